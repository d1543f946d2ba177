package soak

import (
	"errors"
	"testing"
	"time"
)

// Only what no replica could prevent is excused.
func TestLedger_Excuses(t *testing.T) {
	begin := time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	l := newLedger()
	l.killed(window{"A", at(10), at(10.1)})
	l.overwritten(window{"crd", at(20), at(20.3)})
	l.overwritten(window{"late", at(40), at(46)})
	const (
		eof   = `Internal error occurred: failed calling webhook "x": failed to call webhook: Post "https://x": EOF`
		reset = `conversion webhook for example.com/v1, Kind=Pizza failed: Post "https://x": read: connection reset by peer`
		x509  = `conversion webhook for example.com/v1, Kind=Pizza failed: Post "https://x": tls: failed to verify certificate: x509: certificate signed by unknown authority`
		other = `the server was unable to return a response in the time allotted`
	)
	for name, c := range map[string]struct {
		start, end float64
		text       string
		excused    bool
	}{
		"in flight at the kill":               {9.9, 10.05, eof, true},
		"in flight, a conversion":             {9.9, 10.05, reset, true},
		"ended before the kill":               {9.8, 9.9, eof, false},
		"began after the kill":                {10.2, 10.3, eof, false},
		"in flight, and denied":               {9.9, 10.05, other, false},
		"in flight, and did not trust":        {9.9, 10.05, x509, false},
		"not from a webhook":                  {9.9, 10.05, "EOF", false},
		"met an overwritten bundle":           {20.1, 20.2, x509, true},
		"the API server has not heard yet":    {23.2, 23.3, x509, true},
		"long after the repair":               {23.4, 23.5, x509, false},
		"before it was overwritten":           {19.8, 19.9, x509, false},
		"a connection broke at the overwrite": {20.1, 20.2, eof, false},
		"the repair took too long":            {41, 41.1, x509, false},
	} {
		if got := l.excuse(failure{"get", at(c.start), at(c.end), errors.New(c.text)}) != ""; got != c.excused {
			t.Errorf("%s: excused is %v", name, got)
		}
	}
}

// Each failure is counted.
func TestLedger_Failures(t *testing.T) {
	l := newLedger()
	l.note("get", time.Now(), nil)
	l.note("get", time.Now(), errors.New("not found"))
	requests, failed, excused := l.judge()
	if requests["get"] != 2 || len(failed) != 1 || len(excused) != 0 {
		t.Errorf("got %v, %v, %v", requests, failed, excused)
	}
}

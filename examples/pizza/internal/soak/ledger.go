package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// repairTime is how soon an overwritten CA bundle must be right again, on two
	// processors that do much else. The usual time is printed.
	repairTime = 5 * time.Second

	// hearing is how long an API server may take to hear of the repair: its informer gets it
	// when it gets a processor. With six times the work that there were processors for, it was
	// 1.1 seconds.
	hearing = 3 * time.Second

	// breaking is how long an API server may use a connection that has been broken: it hears
	// of that when it gets a processor.
	breaking = time.Second

	// notice is how long a client may take to hear that its connection has broken.
	notice = 10 * time.Second
)

// ledger remembers what clients have met, and what happened meanwhile.
type ledger struct {
	mu         sync.Mutex
	requests   map[string]int // by kind
	failures   []failure
	kills      []window
	overwrites []window
	events     []window // all that happened
}

type failure struct {
	kind       string
	start, end time.Time
	err        error
}

// window is a time in which something was going on.
type window struct {
	what       string
	start, end time.Time
}

func newLedger() *ledger { return &ledger{requests: map[string]int{}} }

// note records a request.
func (l *ledger) note(kind string, start time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[kind]++
	if err != nil {
		l.failures = append(l.failures, failure{kind, start, time.Now(), err})
	}
}

// happened remembers an event, for the explanation of failures.
func (l *ledger) happened(w window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, w)
}

// around says what happened a little before and during a failure.
func (l *ledger) around(f failure) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var what []string
	for _, w := range l.events {
		if w.start.Before(f.end) && w.end.After(f.start.Add(-2*time.Second)) {
			what = append(what, fmt.Sprintf("%s from %s to %s", w.what, w.start.Format("05.000"), w.end.Format("05.000")))
		}
	}
	return strings.Join(what, ", ")
}

func (l *ledger) killed(w window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kills = append(l.kills, w)
}

func (l *ledger) overwritten(w window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overwrites = append(l.overwrites, w)
}

// The API server's words for a webhook whose connection broke.
var broken = []string{"EOF", "connection reset by peer", "broken pipe", "connection refused", "client connection lost", "server closed idle connection", "use of closed network connection"}

// excuse says why no replica could have prevented a failure; it is empty if one could have.
func (l *ledger) excuse(f failure) string {
	text := f.err.Error()
	webhook := strings.Contains(text, "conversion webhook for ") || strings.Contains(text, "failed calling webhook")
	if webhook && slices.ContainsFunc(broken, func(b string) bool { return strings.Contains(text, b) }) {
		for _, w := range l.kills {
			// It was on its way when the replica's connections broke.
			if f.start.Before(w.end) && f.end.After(w.start) && f.end.Before(w.end.Add(notice)) {
				return "in flight on a replica that was killed"
			}
		}
	}
	if f.kind != "handshake" && strings.Contains(text, "x509: ") {
		for _, w := range l.overwrites {
			if f.end.After(w.start) && f.start.Before(w.end.Add(hearing)) && w.end.Sub(w.start) < repairTime {
				return "met a CA bundle that was overwritten by hand"
			}
		}
	}
	return ""
}

// judge returns how many requests there were, by kind, and the failures: those that count, and
// how many do not, by their excuse.
func (l *ledger) judge() (requests map[string]int, failed []failure, excused map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	excused = map[string]int{}
	for _, f := range l.failures {
		if why := l.excuse(f); why != "" {
			excused[why]++
		} else {
			failed = append(failed, f)
		}
	}
	return l.requests, failed, excused
}

func (f failure) String() string {
	return fmt.Sprintf("%s (%s, after %s): %v", f.kind, f.start.Format("15:04:05.000"), f.end.Sub(f.start).Round(time.Millisecond), f.err)
}

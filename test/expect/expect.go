// Package expect has the checks that most tests of this repository begin with or wait for. Compare values with
// cmp.Diff of go-cmp.
package expect

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorContains fails the test, which goes on, for each text that an error does not contain. A nil error contains none.
func ErrorContains(t testing.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want one that contains %q", fmt.Sprint(err), text)
		}
	}
}

// patience is how long a condition may take on a busy machine.
const patience = 2 * time.Minute

// Eventually calls a function until it returns no error, and returns how long that took. After two minutes, the last
// error ends the test.
func Eventually(t testing.TB, f func() error) time.Duration {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := f()
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > patience {
			t.Fatal(err)
		}
	}
}

// EventuallyTrue is Eventually for a condition that has no error. If it does not come true, its description ends the test.
func EventuallyTrue(t testing.TB, what string, f func() bool) time.Duration {
	t.Helper()
	return Eventually(t, func() error {
		if f() {
			return nil
		}
		return fmt.Errorf("after %s, still not: %s", patience, what)
	})
}

package expect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// recorder keeps what a test would have failed with.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestExpect_Failures(t *testing.T) {
	r := &recorder{TB: t}
	expect.NoError(r, nil)
	expect.ErrorContains(r, errors.New("out of flour"), "out", "flour")
	if len(r.failures) > 0 {
		t.Errorf("got %q, want no failures", r.failures)
	}
	expect.NoError(r, errors.New("out of flour"))
	expect.ErrorContains(r, errors.New("out of flour"), "flour", "cheese")
	expect.ErrorContains(r, nil, "")
	want := []string{"out of flour", `got error "out of flour", want one that contains "cheese"`, `got error "<nil>", want one that contains ""`}
	if diff := cmp.Diff(want, r.failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestEventually_Retries(t *testing.T) {
	n := 0
	expect.Eventually(t, func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	expect.EventuallyTrue(t, "it is called again", func() bool { n++; return n == 5 })
	if n != 5 {
		t.Errorf("the functions were called %d times, want 5", n)
	}
}

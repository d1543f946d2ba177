package logthrottle_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crdkit/crdkit/internal/logthrottle"
)

func TestThrottle_OncePerProblemAndInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := errors.New("a"), errors.New("b")
		var throttle logthrottle.Throttle
		for i, step := range []struct {
			after    time.Duration
			problem  error
			resolved bool
			want     bool
		}{
			{problem: a, want: true},
			{after: 2 * logthrottle.Interval, problem: a, want: false}, // the same
			{problem: b, want: true},
			{problem: a, want: false}, // too soon
			{after: logthrottle.Interval, problem: a, want: true},
			{after: logthrottle.Interval, problem: a, resolved: true, want: true}, // it came back
		} {
			time.Sleep(step.after)
			if step.resolved {
				throttle.Resolved()
			}
			if got := throttle.Allow(step.problem); got != step.want {
				t.Errorf("step %d: got %t", i, got)
			}
		}
	})
}

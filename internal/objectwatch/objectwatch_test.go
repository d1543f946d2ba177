package objectwatch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/test/logcheck"
)

// resource has a watch, or an error.
type resource struct {
	dynamic.ResourceInterface
	watch watch.Interface
	err   error
	calls int
}

func (r *resource) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	r.calls++
	if opts.FieldSelector != "metadata.name=ca" {
		return nil, errors.New("the selector is " + opts.FieldSelector)
	}
	return r.watch, r.err
}

func TestRun_SyncsAtEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		wake := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var syncs atomic.Int64
		o := Object{Client: &resource{watch: w}, Name: "ca", WatchRetry: time.Second, Sync: func(context.Context) (time.Duration, error) {
			syncs.Add(1)
			return time.Minute, nil
		}}
		go o.Run(ctx, wake)
		wants := func(when string, want int64) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := syncs.Load(); got != want {
				t.Errorf("%s: %d calls of Sync, want %d", when, got, want)
			}
		}
		wants("at the start, and when the watch begins", 2)
		for range 3 { // nothing waits, and the events are one change
			w.Modify(&unstructured.Unstructured{})
		}
		wants("after events", 4)
		Wake(wake)
		wants("after a wake", 5)
		time.Sleep(time.Minute)
		wants("after the time that Sync returned", 6)
		cancel()
		w.Stop()
	})
}

func TestRun_LogsAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, lines := logcheck.Record(t.Context())
		ctx, cancel := context.WithTimeout(logged, 3500*time.Millisecond)
		defer cancel()
		r := &resource{err: errors.New("forbidden")}
		o := Object{Client: r, Name: "ca", WatchRetry: time.Second, Message: "Cannot sync", Sync: func(context.Context) (time.Duration, error) {
			return time.Second, errors.New("conflict")
		}}
		o.Run(ctx, make(chan struct{}, 1))
		if r.calls != 4 {
			t.Errorf("it tried %d times in 3.5 seconds, want 4", r.calls)
		}
		log := lines()
		all := strings.Join(log, "\n")
		if len(log) != 2 || !strings.Contains(all, "forbidden") || !strings.Contains(all, "Cannot sync") || !strings.Contains(all, "conflict") {
			t.Errorf("the log is %q, want a line about the watch and one of Sync", log)
		}
	})
}

func TestThrottle_OncePerProblemAndInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := errors.New("a"), errors.New("b")
		var log throttle
		for i, step := range []struct {
			after   time.Duration
			problem error
			want    bool
		}{
			{problem: a, want: true},
			{after: 2 * logInterval, problem: a, want: false}, // the same
			{problem: b, want: true},
			{problem: a, want: false}, // too soon
			{after: logInterval, problem: a, want: true},
			{after: logInterval, problem: nil, want: false},
			{problem: a, want: true}, // it came back
		} {
			time.Sleep(step.after)
			if got := log.allow(step.problem); got != step.want {
				t.Errorf("step %d: got %t", i, got)
			}
		}
	})
}

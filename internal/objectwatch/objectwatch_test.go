package objectwatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
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

func TestNotify_AtEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		changed := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go Notify(ctx, &resource{watch: w}, "ca", time.Second, changed)
		<-changed // of what was before the watch
		synctest.Wait()
		if len(changed) > 0 {
			t.Error("there is no change")
		}
		for range 3 { // nobody receives, and nothing waits
			w.Modify(&unstructured.Unstructured{})
		}
		synctest.Wait()
		<-changed
		if len(changed) > 0 {
			t.Error("changes that were not received add up")
		}
		cancel()
		w.Stop()
	})
}

func TestNotify_LogsAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		logger := funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
		ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), 3500*time.Millisecond)
		defer cancel()
		r := &resource{err: errors.New("forbidden")}
		Notify(ctx, r, "ca", time.Second, make(chan struct{}))
		if r.calls != 4 {
			t.Errorf("it tried %d times in 3.5 seconds, want 4", r.calls)
		}
		if len(log) != 1 || !strings.Contains(log[0], "forbidden") {
			t.Errorf("the log is %q, want one line", log)
		}
	})
}

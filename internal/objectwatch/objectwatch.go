// Package objectwatch keeps a single object of the cluster as its owner wants it.
package objectwatch

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
)

const (
	// pause is the least time between two calls: events come in crowds.
	pause = 50 * time.Millisecond
	// logInterval is the least time between two problems that are logged.
	logInterval = time.Minute
)

// Object is an object of the cluster, and what looks after it.
type Object struct {
	Client dynamic.ResourceInterface
	Name   string
	// WatchRetry is the pause after a watch that failed. Without it, the object is not watched.
	WatchRetry time.Duration
	// Sync reads the object, and does what is due. It returns when to call it again at the latest,
	// and a problem that is logged with Message.
	Sync    func(ctx context.Context) (again time.Duration, problem error)
	Message string
}

// Run calls Sync at once, whenever the object may have changed or wake receives a value, and in
// any case after the time that it returned, until ctx ends. Problems are logged with the logger of
// ctx, which should have the object among its values: the same one once, and no more than one a
// minute.
func (o Object) Run(ctx context.Context, wake chan struct{}) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if o.WatchRetry > 0 {
		watching.Go(func() { o.watch(ctx, wake) })
	}
	var log throttle
	for ctx.Err() == nil {
		again, problem := o.Sync(ctx)
		if log.allow(problem) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(problem, o.Message)
		}
		sleep(ctx, pause)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(again):
		}
	}
}

// watch wakes whenever the object may be another one, until ctx ends. It misses what happens while
// there is no watch.
func (o Object) watch(ctx context.Context, wake chan<- struct{}) {
	var log throttle
	for ctx.Err() == nil {
		begin := time.Now()
		w, err := o.Client.Watch(ctx, metav1.ListOptions{
			FieldSelector:  fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name).String(),
			TimeoutSeconds: new(int64(600)),
		})
		if log.allow(err) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot watch the object; its changes are seen later")
		}
		if err == nil {
			Wake(wake) // the watch does not tell of a deletion before it
			for range w.ResultChan() {
				Wake(wake)
			}
		}
		if err != nil || time.Since(begin) < o.WatchRetry {
			sleep(ctx, o.WatchRetry)
		}
	}
}

// Wake sends to a channel, unless it is full.
func Wake(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// throttle decides which problems are logged. Some differ a bit each time, such as by the port of
// a connection.
type throttle struct {
	text string
	at   time.Time
}

// allow reports whether to log a problem. None is nil: the same problem is logged again when it
// comes back.
func (t *throttle) allow(problem error) bool {
	if problem == nil {
		t.text = ""
		return false
	}
	if problem.Error() == t.text || !t.at.IsZero() && time.Since(t.at) < logInterval {
		return false
	}
	t.text, t.at = problem.Error(), time.Now()
	return true
}

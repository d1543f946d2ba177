// Package objectwatch tells the owner of a single object of the cluster when it has changed.
package objectwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logthrottle"
)

// Notify sends to changed whenever the object of a name may be another one, until ctx ends. It
// misses what happens while there is no watch: the receiver reads the object, and does so once in a
// while in any case. A watch that fails is logged, with the logger of ctx, which should have the
// object among its values, and begun again after a pause.
func Notify(
	ctx context.Context, client dynamic.ResourceInterface, name string, pause time.Duration, changed chan<- struct{},
) {
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var throttle logthrottle.Throttle
	for ctx.Err() == nil {
		begin := time.Now()
		w, err := client.Watch(ctx, metav1.ListOptions{
			FieldSelector:  fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
			TimeoutSeconds: new(int64(600)),
		})
		if err == nil {
			throttle.Resolved()
			notify() // the watch does not tell of a deletion before it
			for range w.ResultChan() {
				notify()
			}
			if time.Since(begin) >= pause {
				continue
			}
		} else if ctx.Err() == nil && throttle.Allow(err) {
			klog.FromContext(ctx).Error(err, "Cannot watch the object; its changes are seen later")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

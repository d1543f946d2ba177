package reference

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
)

const (
	// redial is the least time between two attempts to reach an API server.
	redial = time.Second
	// catchUp is how long a watch that was interrupted for longer may need to deliver the events
	// that it missed.
	catchUp = time.Second
)

// NewInformer returns a [cache.SharedIndexInformer] that observes its watch. See "Stale informers"
// in the package documentation. The parameters are those of [cache.NewSharedIndexInformer]. You can
// also assign NewInformer to the field NewInformer of the Options of a controller-runtime cache, or
// call it in InformerFor of a client-go factory.
//
// While the API server cannot be reached, the informer tries to connect every one to two seconds,
// where an informer of client-go waits for up to a minute (client-go/tools/cache/reflector.go,
// defaultBackoffMax).
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	w := &watcher{lw: cache.ToListerWatcherWithContext(lw), since: time.Now()}
	observed := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}, lw)
	return &informer{cache.NewSharedIndexInformer(observed, example, resync, indexers), w}
}

// informer is an informer that observes its watch.
type informer struct {
	cache.SharedIndexInformer
	watcher *watcher
}

// AddEventHandler shows the watch to a handler of this package. The handler arrives here even if
// the caller holds another type, such as controller-runtime's informer of several namespaces.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	if h, ok := h.(*handler); ok {
		h.watchers = append(h.watchers, i.watcher)
	}
	return i.SharedIndexInformer.AddEventHandler(h)
}

// watcher observes the requests of an informer. The reflector's own error handler does not suffice,
// because it is not called when a watch ends, nor while connections are refused.
type watcher struct {
	lw cache.ListerWatcherWithContext

	mu      sync.Mutex
	current watch.Interface // nil if the watch is broken
	since   time.Time       // when the watch broke, or the informer was created
	ready   time.Time       // when a watch that was opened again has delivered what was missed
	cause   error           // why the watch broke, or could not be opened again
}

var errEnded = errors.New("the watch ended")

// problem returns why events may be missing, and since when, or an empty string.
func (w *watcher) problem(synced bool) (string, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cause := ""
	if w.cause != nil {
		cause = ": " + w.cause.Error()
	}
	switch now := time.Now(); {
	case !synced:
		return "has not synced yet" + cause, w.since
	case w.current == nil:
		return fmt.Sprintf("has had no watch for %s%s", now.Sub(w.since).Round(time.Millisecond), cause), w.since
	case now.Before(w.ready):
		return "receives the events that it missed", w.since
	}
	return "", w.since
}

// opened records that a watch delivers the changes from now on.
func (w *watcher) opened(current watch.Interface) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !w.ready.IsZero() && now.Sub(w.since) > catchUp {
		w.ready = now.Add(catchUp)
	} else {
		w.ready = now
	}
	w.current, w.cause = current, nil
}

// failed records why a watch ended, or why a request failed if the watch is nil.
func (w *watcher) failed(current watch.Interface, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil && w.current != current {
		return // the reflector has opened another watch
	}
	if now := time.Now(); w.current != nil {
		if w.current = nil; !now.Before(w.ready) { // else events of the outage before are missing, too
			w.since = now
		}
	}
	if request := (*url.Error)(nil); errors.As(cause, &request) {
		cause = request.Err // without the address of the request
	}
	w.cause = cause
}

func (w *watcher) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return request(ctx, w, opts, w.lw.ListWithContext)
}

func (w *watcher) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := request(ctx, w, opts, w.lw.WatchWithContext)
	if err != nil {
		return nil, err
	}
	return w.forward(in, opts.SendInitialEvents != nil && *opts.SendInitialEvents), nil
}

// request makes a request until the API server answers it, and records errors.
func request[T any](ctx context.Context, w *watcher, opts metav1.ListOptions, send func(context.Context, metav1.ListOptions) (T, error)) (T, error) {
	for attempt := 0; ; attempt++ {
		response, err := send(ctx, opts)
		if err == nil {
			return response, nil
		}
		w.failed(nil, err)
		if !unanswered(err) {
			return response, err
		}
		if attempt == 0 { // the reflector, which logs errors, does not see this one
			klog.FromContext(ctx).Info("An informer cannot reach the API server, and tries again every one to two seconds", "err", logtext.Error(err))
		}
		select {
		case <-ctx.Done():
			return response, err
		case <-time.After(wait.Jitter(redial, 1)):
		}
	}
}

// unanswered reports whether a request did not reach an API server that serves: there was no answer,
// or that of a load balancer.
func unanswered(err error) bool {
	return errors.As(err, new(*url.Error)) || utilnet.IsConnectionRefused(err) || apierrors.IsServiceUnavailable(err)
}

// forward returns a watch with the events of another one. A watch that lists is opened when the
// list is complete.
func (w *watcher) forward(in watch.Interface, lists bool) watch.Interface {
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	if !lists {
		w.opened(out)
	}
	go func() {
		cause := errEnded
		defer close(events)
		defer func() { w.failed(out, cause) }() // before the reflector opens another watch
		defer in.Stop()
		for {
			select {
			case <-out.StopChan():
				return
			case event, ok := <-in.ResultChan():
				if !ok {
					return
				}
				if event.Type == watch.Error {
					cause = apierrors.FromObject(event.Object)
				}
				select {
				case <-out.StopChan():
					return
				case events <- event:
				}
				if lists && endsList(event) {
					w.opened(out)
				}
			}
		}
	}()
	return out
}

// endsList reports whether an event ends the list of a watch (KEP-3157).
func endsList(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	m, err := meta.Accessor(event.Object)
	return err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

package reference_test

import (
	"context"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	testingcache "k8s.io/client-go/tools/cache/testing"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// stream is an API server with one watch, which a test ends.
type stream struct {
	lists bool // the watch lists (KEP-3157)

	mu      sync.Mutex
	current *watch.RaceFreeFakeWatcher
	fails   error
}

func (s *stream) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &v1beta1.PizzaList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, s.fails
}

func (s *stream) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return nil, s.fails
	}
	s.current = watch.NewRaceFreeFake()
	return s.current, nil
}

func (s *stream) IsWatchListSemanticsUnSupported() bool { return !s.lists }

// end ends the watch, and answers requests with an error until it ends again.
func (s *stream) end(fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.Stop()
	}
	s.current, s.fails = nil, fails
}

func (s *stream) send(event watch.EventType, obj runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Action(event, obj)
}

// observe runs an informer in the bubble of a test.
func (s *stream) observe(t *testing.T) *reference.Referrers {
	t.Helper()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}, s)
	informer := reference.NewInformer(lw, &v1beta1.Pizza{}, 0, cache.Indexers{})
	// The default handler sleeps until the real time, which is decades later than that of the bubble.
	expect.NoError(t, informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
	r := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	run(t, informer)
	synctest.Wait()
	return r
}

const theInformer = "the informer of pizzas.restaurant.programming-kubernetes.info "

// expectCheck compares the error of a check, without what was left out of want.
func expectCheck(t *testing.T, when string, r *reference.Referrers, want string) {
	t.Helper()
	synctest.Wait()
	got := ""
	if err := r.Ready(nil); err != nil {
		got = strings.TrimPrefix(err.Error(), theInformer)
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func TestNewInformer_BrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		r := s.observe(t)
		time.Sleep(time.Minute)
		expectCheck(t, "a minute after the start", r, "")
		s.end(nil)
		expectCheck(t, "after the watch was renewed", r, "")
		time.Sleep(time.Minute)
		s.end(apierrors.NewServiceUnavailable("the server is starting"))
		time.Sleep(5 * time.Second)
		expectCheck(t, "without a watch", r, "has had no watch for 5s: the server is starting")
		s.end(nil)
		for err := r.Ready(nil); err != nil && strings.Contains(err.Error(), "had no watch"); err = r.Ready(nil) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(990 * time.Millisecond)
		expectCheck(t, "after almost a second", r, "receives the events that it missed")
		time.Sleep(20 * time.Millisecond)
		expectCheck(t, "after a second", r, "")
	})
}

// A watch that lists is trusted when it has listed everything.
func TestNewInformer_WatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{lists: true}
		r := s.observe(t)
		listed := &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		expectCheck(t, "before the list", r, "has not synced yet")
		s.send(watch.Bookmark, listed)
		expectCheck(t, "after the list", r, "")
		time.Sleep(time.Minute)
		gone := apierrors.NewResourceExpired("too old")
		s.send(watch.Error, &gone.ErrStatus)
		time.Sleep(30 * time.Second) // it lists again
		expectCheck(t, "before the next list", r, "has had no watch for 30s: too old")
		s.send(watch.Bookmark, listed)
		time.Sleep(2 * time.Second)
		expectCheck(t, "after the next list", r, "")
	})
}

// After an outage, a watch that ends at once delivers nothing that was missed.
func TestNewInformer_WatchEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		r := s.observe(t)
		time.Sleep(time.Minute)
		s.end(apierrors.NewServiceUnavailable("the server is starting"))
		time.Sleep(30 * time.Second)
		s.end(nil)
		wait := func() {
			for err := r.Ready(nil); err == nil || strings.Contains(err.Error(), "had no watch"); err = r.Ready(nil) {
				if err == nil {
					t.Fatal("it is ready at once")
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		wait()
		gone := apierrors.NewResourceExpired("too old")
		s.send(watch.Error, &gone.ErrStatus)
		synctest.Wait()
		wait()
		expectCheck(t, "after the next watch was opened", r, "receives the events that it missed")
	})
}

// An API server that does not answer is tried every second or two.
func TestNewInformer_NoAnswer(t *testing.T) {
	_, refused := (&network{cut: true}).dial(t.Context(), "tcp", "")
	for cause, err := range map[string]error{
		"dial tcp: connection refused": refused,
		"EOF":                          &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: io.EOF},
		"no endpoints":                 apierrors.NewServiceUnavailable("no endpoints"),
	} {
		t.Run(cause+"/list", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stream{fails: err}
				r := s.observe(t)
				time.Sleep(10 * time.Minute)
				expectCheck(t, "without an API server", r, "has not synced yet: "+cause)
				s.end(nil)
				time.Sleep(3 * time.Second)
				expectCheck(t, "three seconds after it is there", r, "")
			})
		})
		t.Run(cause+"/watch", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stream{}
				r := s.observe(t)
				time.Sleep(time.Minute)
				s.end(err)
				time.Sleep(10 * time.Minute)
				expectCheck(t, "without an API server", r, "has had no watch for 10m0s: "+cause)
				s.end(nil)
				time.Sleep(3 * time.Second)
				expectCheck(t, "three seconds after it is back", r, "")
			})
		})
	}
}

// An informer that cannot report a broken watch is an error, unless the caller accepts it.
func TestNewReferrers_UnwatchedInformer(t *testing.T) {
	informer := cache.NewSharedIndexInformer(testingcache.NewFakeControllerSource(), &v1beta1.Pizza{}, 0, cache.Indexers{})
	const want = "the informer cannot report a broken watch: create it with reference.NewInformer, or accept that with reference.Unwatched"
	_, err := reference.NewReferrers(pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err = reference.NewReferrers(pizzas, reference.Unwatched(informer), reference.ClusterScoped(toppings), toppingsOf); err != nil {
		t.Error(err)
	}
}

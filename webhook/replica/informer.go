package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is an informer of an [Informer] option, with its name.
type informer struct {
	cache.SharedInformer
	name    string
	problem atomic.Pointer[error] // the last error that it reported
}

// listen records the errors that the informer reports. An informer reports no error while
// client-go retries by itself, for example if the API server's own cache lacks a conversion
// (tools/cache/reflector.go, watchList).
func (i *informer) listen() error {
	return i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		i.problem.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
}

// check passes when the informer has synced, or when it cannot sync because no webhook
// converts its objects. This replica will convert them when it is ready.
func (i *informer) check(unconverted func() bool) func(*http.Request) error {
	return func(*http.Request) error {
		problem := i.problem.Load()
		switch {
		case i.HasSynced():
			return nil
		// The API server responds with 429 while it fills its cache.
		case problem != nil && !lacksConversion(*problem) && !apierrors.IsTooManyRequests(*problem):
			return fmt.Errorf("not synced: %w", *problem)
		case unconverted():
			return nil
		}
		return errors.New("not synced")
	}
}

// lacksConversion reports whether the API server could not convert. Only the text of the error
// shows this, because the converter returns a plain error, with a TODO for one that becomes a
// Status (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go). A 429 also comes from
// a cache that is only slow, and the reason StorageReadError (Kubernetes 1.37) from corrupt objects. If
// the text changes, a first replica never becomes ready, and TestRun_FirstReplica fails with that
// release of Kubernetes.
func lacksConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}

// silence is how long informers may report nothing, if the replica may not list in all
// namespaces.
const silence = 10 * time.Second

// unconverted finds out whether the API server lacks a webhook for conversion. An informer
// does not report this, because the reflector retries without an error. A time limit instead
// would make a replica with many objects ready before its informers have synced, or delay the
// first replica.
type unconverted struct {
	client *rest.RESTClient
	found  atomic.Bool
}

func newUnconverted(config *rest.Config) (*unconverted, error) {
	status := runtime.NewScheme()
	metav1.AddToGroupVersion(status, schema.GroupVersion{Version: "v1"}) // otherwise errors lose their message
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(status).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	return &unconverted{client: client}, err
}

// watch lists the resources repeatedly until a list cannot be converted, or ctx is done. Then
// this replica must convert, and gets ready. It must stay ready while the API server turns to
// it.
func (u *unconverted) watch(ctx context.Context, resources []schema.GroupVersionResource) {
	for begin := time.Now(); ctx.Err() == nil; {
		for _, r := range resources {
			// A replica that may list only in some namespaces gets Forbidden. An informer with
			// another problem has reported it by then.
			err := u.list(ctx, r)
			if lacksConversion(err) || apierrors.IsForbidden(err) && time.Since(begin) > silence {
				u.found.Store(true)
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// list lists a resource, and returns the error. A list without a limit is answered from the
// API server's watch cache, which holds all objects in that version. While the cache is not
// ready, the response has the reason (apiserver/pkg/storage/cacher: delegator.go,
// shouldDelegateListOnNotReadyCache, and ready.go). The selector keeps the response small. It
// is a 429, after which client-go would retry.
func (u *unconverted) list(ctx context.Context, r schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return u.client.Get().AbsPath("apis", r.Group, r.Version, r.Resource).
		Param("fieldSelector", "metadata.name=-").MaxRetries(0).Do(ctx).Error()
}

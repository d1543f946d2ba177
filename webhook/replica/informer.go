package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// informer is one that the author has given, with a name.
type informer struct {
	cache.SharedInformer
	name    string
	problem atomic.Pointer[error] // that it told last
}

// listen notes what the informer says of its troubles. It says nothing while client-go tries
// again by itself, as it does where the API server's own cache lacks a conversion
// (tools/cache/reflector.go, watchList).
func (i *informer) listen() error {
	return i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		i.problem.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
}

// check passes when the informer has synced, or when it cannot because nobody converts its
// objects: this replica will, when it is ready.
func (i *informer) check(unconverted func() bool) func(*http.Request) error {
	return func(*http.Request) error {
		if i.HasSynced() {
			return nil
		}
		problem := i.problem.Load()
		switch {
		case problem != nil && !lacksConversion(*problem):
			return fmt.Errorf("it has not synced: %w", *problem)
		case unconverted():
			return nil
		}
		return errNotSynced
	}
}

var errNotSynced = errors.New("it has not synced")

// lacksConversion says whether an error may be for want of conversion. The API server answers
// 429 while it fills its cache.
func lacksConversion(err error) bool {
	return strings.Contains(err.Error(), conversionFailed) || apierrors.IsTooManyRequests(err)
}

package replica

import (
	"errors"
	"net/http"

	"k8s.io/client-go/tools/cache"
)

// informer is one that the author has given, with a name.
type informer struct {
	cache.SharedInformer
	name string
}

var errNotSynced = errors.New("it has not synced")

// check passes when the informer has synced, or when it cannot because nobody converts its
// objects: this replica will, when it is ready.
func (i *informer) check(unconverted func() bool) func(*http.Request) error {
	return func(*http.Request) error {
		if i.HasSynced() || unconverted() {
			return nil
		}
		return errNotSynced
	}
}

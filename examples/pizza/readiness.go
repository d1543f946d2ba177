package pizza

import (
	"net/http"
	"time"
)

// patience is how long the operator may be without its informers before it is ready
// without them.
const patience = 15 * time.Second

// unlessLate returns a check of an informer that passes, too, if the informer has not
// synced for longer than patience.
//
// A Service sends requests only to replicas that are ready. While there is none, nothing
// is converted, and if pizzas are stored in another version than the informer reads, it
// cannot sync: all replicas would wait for one of them to be ready. So they become ready
// late, with conversion at work, and admission says that it cannot judge yet, which the
// API server takes as a reason to ask again (package reference).
func unlessLate(synced func() bool, check func(*http.Request) error) func(*http.Request) error {
	start := time.Now()
	return func(r *http.Request) error {
		if !synced() && time.Since(start) > patience {
			return nil
		}
		return check(r)
	}
}

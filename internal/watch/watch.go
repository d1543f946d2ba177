// Package watch lets a test see what conversion functions do to their input. Package
// conversion looks for a watcher in the context of a single conversion, never in that
// of a request.
package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watcher is called before each conversion function, with what the function is about to
// get, and returns what is called after it. The object is not the watcher's: it must not
// change it, and must copy what it wants to keep.
type Watcher func(from, to schema.GroupVersionKind, in runtime.Object) (after func())

type key struct{}

// With returns a context in which w watches.
func With(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, key{}, w)
}

// From returns who watches in a context; nil if nobody does.
func From(ctx context.Context) Watcher {
	w, _ := ctx.Value(key{}).(Watcher)
	return w
}

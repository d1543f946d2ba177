// Package trace lets a test see what conversion functions do to their input, and take a
// way that no request takes. Package conversion looks into the context of a single
// conversion for it, never into that of a request.
package trace

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is a call of a conversion function. The objects are not the watcher's: it must not
// change them, and must copy what it wants to keep.
type Call struct {
	From, To schema.GroupVersionKind
	In, Out  runtime.Object
	// Func is the function.
	Func func(ctx context.Context, in, out runtime.Object) error
	// Shares says that such a function may leave parts of In in Out, by its contract.
	Shares bool
}

// Watcher is called before each conversion function, and returns what is called after it.
type Watcher func(c Call) (after func())

type (
	watcherKey struct{}
	hubKey     struct{}
)

// With returns a context in which w watches.
func With(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, watcherKey{}, w)
}

// From returns who watches in a context; nil if nobody does.
func From(ctx context.Context) Watcher {
	w, _ := ctx.Value(watcherKey{}).(Watcher)
	return w
}

// ThroughHub returns a context in which an object that has the wanted version already goes
// to the hub and comes back from it. Nobody but a test can see an internal hub otherwise.
func ThroughHub(ctx context.Context) context.Context {
	return context.WithValue(ctx, hubKey{}, true)
}

// IsThroughHub says whether a context comes from [ThroughHub].
func IsThroughHub(ctx context.Context) bool {
	return ctx.Value(hubKey{}) != nil
}

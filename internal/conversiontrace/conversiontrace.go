// Package conversiontrace lets a test watch conversion functions, and convert through the hub where a request
// would not. Package conversion looks for it in the context of a single conversion (Registry.Convert),
// never in that of a ConversionReview.
package conversiontrace

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is a call of a conversion function. A watcher must not change the objects, and must copy what it
// keeps.
type Call struct {
	From, To schema.GroupVersionKind
	In, Out  runtime.Object
	// Func is the function.
	Func func(ctx context.Context, in, out runtime.Object) error
	// Shares reports whether the contract of the function lets Out share memory with In.
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

// From returns the watcher of a context, or nil.
func From(ctx context.Context) Watcher {
	w, _ := ctx.Value(watcherKey{}).(Watcher)
	return w
}

// ThroughHub returns a context in which an object of the wanted version still goes to the hub and back.
// Only so can a test see an internal hub.
func ThroughHub(ctx context.Context) context.Context {
	return context.WithValue(ctx, hubKey{}, true)
}

// IsThroughHub reports whether a context comes from [ThroughHub].
func IsThroughHub(ctx context.Context) bool {
	return ctx.Value(hubKey{}) != nil
}

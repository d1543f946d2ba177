// Package served lets a handler say what it serves, so that what the API server is told
// about it cannot differ from it.
package served

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info is what a handler serves. A conversion webhook has conversions, an admission
// webhook functions.
type Info struct {
	Conversions []Kind
	Functions   []Function
}

// Kind is a kind with all versions in which its objects are read and written, the oldest
// first.
type Kind struct {
	schema.GroupKind
	Versions []string
}

// Function is a function of an admission webhook.
type Function struct {
	// Kind of the objects that it is called for. It is empty for a function of every kind.
	Kind schema.GroupKind
	// Versions of the objects that it is called for; without any, all versions of the kind.
	Versions []string
	// Subresource that it is called for; empty if it is the resource itself. The kind is
	// that of the subresource's object.
	Subresource string
	// Operations as in a webhook's rules: CREATE, UPDATE, DELETE or CONNECT.
	Operations []string
	// Mutates says that its answer has a patch.
	Mutates bool
}

// With returns the handler, which then says what it serves.
func With(h http.Handler, s Info) http.Handler { return handler{h, s} }

type handler struct {
	http.Handler
	served Info
}

// By returns what a handler serves. It returns false if that is not known.
func By(h http.Handler) (Info, bool) {
	known, ok := h.(handler)
	return known.served, ok
}

// Inner returns the handler that was given to [With], or h itself.
func Inner(h http.Handler) http.Handler {
	if known, ok := h.(handler); ok {
		return known.Handler
	}
	return h
}

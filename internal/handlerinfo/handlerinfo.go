// Package handlerinfo lets a handler say what it serves, so that what the API server is told
// about it cannot differ from it.
package handlerinfo

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served is what a handler serves. A conversion webhook has conversions, an admission
// webhook functions.
type Served struct {
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

// Handler is a handler that knows what it serves.
type Handler interface {
	http.Handler
	Served() Served
}

// With returns the handler, which then says what it serves.
func With(h http.Handler, s Served) Handler { return handler{h, s} }

type handler struct {
	http.Handler
	served Served
}

func (h handler) Served() Served { return h.served }

// By returns what a handler serves. It looks behind handlers with a method
// Unwrap() http.Handler. It returns false if nobody knows.
func By(h http.Handler) (Served, bool) {
	for range 100 { // an Unwrap may lead in a circle
		switch known := h.(type) {
		case Handler:
			return known.Served(), true
		case interface{ Unwrap() http.Handler }:
			h = known.Unwrap()
		default:
			return Served{}, false
		}
	}
	return Served{}, false
}

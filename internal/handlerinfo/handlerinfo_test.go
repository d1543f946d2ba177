package handlerinfo_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/handlerinfo"
)

// wrapper is a middleware which says what it wraps.
type wrapper struct{ http.Handler }

func (w wrapper) Unwrap() http.Handler { return w.Handler }

// circle wraps itself.
type circle struct{ http.Handler }

func (c circle) Unwrap() http.Handler { return c }

func TestWhatAHandlerServesIsFoundBehindItsMiddleware(t *testing.T) {
	want := handlerinfo.Served{Conversions: []handlerinfo.Kind{{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Pizza"}, Versions: []string{"v1"}}}}
	h := handlerinfo.With(http.NotFoundHandler(), want)
	for name, h := range map[string]http.Handler{"the handler": h, "wrapped": wrapper{h}, "wrapped twice": wrapper{wrapper{h}}} {
		got, ok := handlerinfo.By(h)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
	for name, h := range map[string]http.Handler{"another": http.NotFoundHandler(), "none": nil, "a circle": circle{h}, "no more": wrapper{nil}} {
		if got, ok := handlerinfo.By(h); ok {
			t.Errorf("%s serves %v", name, got)
		}
	}
}

package served_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/served"
)

// wrapper is a middleware.
type wrapper struct{ http.Handler }

func TestBy_WhatWithHasSaid(t *testing.T) {
	want := served.Info{Conversions: []served.Kind{{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Pizza"}, Versions: []string{"v1"}}}}
	h := served.With(http.NotFoundHandler(), want)
	got, ok := served.By(h)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
	for name, h := range map[string]http.Handler{"another": http.NotFoundHandler(), "none": nil, "behind a middleware": wrapper{h}} {
		if got, ok := served.By(h); ok {
			t.Errorf("%s serves %v", name, got)
		}
	}
}

package library

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema/offline"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.CRD(definition), roundtrip.History("testdata/history"))
}

func TestStoredBooks(t *testing.T) {
	roundtrip.Golden(t, registry(t), "testdata/golden", "v0.2", roundtrip.CRD(definition))
}

func TestBook_V1alpha1ReadAsV1(t *testing.T) {
	server := startServer(t, offline.Stored(book("v1alpha1", "x", `{title: Dune, authors: [Frank Herbert]}`)))
	out, err := booksIn(t, server, "v1").Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"authors":[{"name":"Frank Herbert"}],"title":"Dune"}`, specOf(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := booksIn(t, server, "v1alpha1").Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func registry(t *testing.T) *conversion.Registry {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := newRegistry(s)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

package library

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.CRD(definition), roundtrip.History("testdata/history"))
}

func TestStoredBooks(t *testing.T) {
	roundtrip.Golden(t, registry(t), "testdata/golden", "v0.1", roundtrip.CRD(definition))
}

func TestBook_SameInBothVersions(t *testing.T) {
	server := startServer(t)
	omens := object(t, book("v1alpha1", "x", `{title: Good Omens, authors: [Terry Pratchett, Neil Gaiman]}`))
	if _, err := booksIn(t, server, "v1alpha1").Create(t.Context(), omens, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for version, spec := range map[string]string{
		"v1alpha1": `{"authors":["Terry Pratchett","Neil Gaiman"],"shelf":"G","title":"Good Omens"}`,
		"v1":       `{"authors":[{"name":"Terry Pratchett"},{"name":"Neil Gaiman"}],"shelf":"G","title":"Good Omens"}`,
	} {
		out, err := booksIn(t, server, version).Get(t.Context(), "x", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(spec, specOf(t, out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
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

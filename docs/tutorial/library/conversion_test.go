package library

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema/apiservertest"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.CRD(definition), roundtrip.History("testdata/history"))
}

func TestStoredBooks(t *testing.T) {
	roundtrip.Golden(t, registry(t), "testdata/golden", "v0.2", roundtrip.CRD(definition))
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

func TestRoles_KeptByOldClients(t *testing.T) {
	server := startServer(t)
	solaris := object(t, book("v1", "x", `{title: Solaris, authors: [{name: Stanisław Lem}, {name: Bill Johnston, role: Translator}]}`))
	if _, err := booksIn(t, server, "v1").Create(t.Context(), solaris, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	edit := []byte(`{"spec":{"authors":["Bill Johnston","Stanisław Lem"],"pages":204}}`)
	if _, err := booksIn(t, server, "v1alpha1").Patch(t.Context(), "x", types.MergePatchType, edit, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err := booksIn(t, server, "v1").Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"authors":[{"name":"Bill Johnston","role":"Translator"},{"name":"Stanisław Lem"}],"pages":204,"shelf":"S","title":"Solaris"}`
	if diff := cmp.Diff(want, specOf(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStorageVersion_MovesOnWrite(t *testing.T) {
	server := startServer(t, apiservertest.Stored(book("v1alpha1", "x", `{title: Dune, authors: [Frank Herbert]}`)))
	if _, err := booksIn(t, server, "v1alpha1").Patch(t.Context(), "x", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stored, err := server.Stored(t.Context(), schema.GroupResource{Group: "library.example.com", Resource: "books"}, "default", "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := object(t, stored).GetAPIVersion(); got != "library.example.com/v1" {
		t.Errorf("stored as %s", got)
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

package library

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/schema/offline"
)

// TestStoredBooks reads what earlier releases have stored: books of v1, and
// what books of v1alpha1 have become.
func TestStoredBooks(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no golden files", err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var golden struct {
				Object    *unstructured.Unstructured
				Converted struct{ V1 *unstructured.Unstructured }
			}
			if err := json.Unmarshal(text, &golden); err != nil {
				t.Fatal(err)
			}
			want := golden.Object
			if golden.Converted.V1 != nil {
				want = golden.Converted.V1
			}
			want.SetNamespace("default")
			stored, err := want.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			server := startServer(t, offline.Stored(stored))
			got, err := booksIn(t, server, "v1").Get(t.Context(), want.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

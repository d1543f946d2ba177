package library

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema/offline"
)

// TestStoredBooksStayWhatTheyAre reads what earlier releases have stored: books of v1, and
// what books of v1alpha1 have become.
func TestStoredBooksStayWhatTheyAre(t *testing.T) {
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
				Object    json.RawMessage
				Converted struct{ V1 json.RawMessage }
			}
			if err := json.Unmarshal(text, &golden); err != nil {
				t.Fatal(err)
			}
			stored := golden.Object
			if golden.Converted.V1 != nil {
				stored = golden.Converted.V1
			}
			var want struct {
				Metadata struct{ Namespace, Name string }
				Spec     any
			}
			if err := json.Unmarshal(stored, &want); err != nil {
				t.Fatal(err)
			}
			out, err := offlineBooks(t, offline.Stored(stored)).Get(t.Context(), "v1", want.Metadata.Namespace, want.Metadata.Name)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal([]byte(specOf(t, out)), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Spec, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

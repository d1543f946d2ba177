package library

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema"
)

// TestSchema checks which books the API server accepts, and what it stores.
func TestSchema(t *testing.T) {
	crd, err := schema.Parse(definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, spec, stored, says string }{
		{name: "a book", spec: `{title: Dune, authors: [Frank Herbert], isbn: "9780441172719", pages: 688}`,
			stored: `{"authors":["Frank Herbert"],"isbn":"9780441172719","pages":688,"title":"Dune"}`},
		{name: "an unknown field", spec: `{title: Dune, color: blue}`,
			stored: `{"title":"Dune"}`},
		{name: "no title", spec: `{pages: 688}`,
			says: `Book.library.example.com "x" is invalid: spec.title: Required value`},
		{name: "an author twice", spec: `{title: Dune, authors: [Frank Herbert, Frank Herbert]}`,
			says: `Book.library.example.com "x" is invalid: spec.authors[1]: Duplicate value: "Frank Herbert"`},
		{name: "an ISBN of ten digits", spec: `{title: Dune, isbn: "0441172717"}`,
			says: `Book.library.example.com "x" is invalid: spec.isbn: Invalid value: "0441172717": spec.isbn in body should match '^[0-9]{13}$'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := crd.Version("v1alpha1").Create(t.Context(), book("v1alpha1", "x", test.spec))
			if diff := cmp.Diff(test.says, textOf(err)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.stored, specOf(t, out.Object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// book returns a book in YAML.
func book(version, name, spec string) []byte {
	return fmt.Appendf(nil, "apiVersion: library.example.com/%s\nkind: Book\nmetadata: {name: %s}\nspec: %s\n", version, name, spec)
}

// specOf returns the spec of an object in JSON.
func specOf(t *testing.T, object json.Marshaler) string {
	t.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var fields struct{ Spec json.RawMessage }
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields.Spec)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

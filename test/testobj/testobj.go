// Package testobj builds objects of Kubernetes for tests, and reads them.
package testobj

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/expect"
)

// As decodes a YAML or JSON text into a Go type. A field that the type does not have ends the test.
func As[T any](t testing.TB, text string) *T {
	t.Helper()
	into := new(T)
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	return into
}

// Parse returns the object of a YAML or JSON text. Integers are int64, as in the objects of client-go.
func Parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw := []byte(text)
	if !json.Valid(raw) {
		var err error
		raw, err = yaml.YAMLToJSONStrict(raw)
		expect.NoError(t, err)
	}
	u := &unstructured.Unstructured{}
	expect.NoError(t, u.UnmarshalJSON(raw))
	return u
}

// ParseAll returns the objects of a YAML text whose documents are separated by ---. Empty documents are left out.
func ParseAll(t testing.TB, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split("\n"+string(text), "\n---\n") {
		if object := *As[map[string]any](t, document); len(object) > 0 {
			all = append(all, Parse(t, document))
		}
	}
	return all
}

// Field returns the JSON of the field at a path, such as "spec", "toppings", or "null" if the object lacks the field. The
// object is JSON, or a value that encodes to JSON.
func Field(t testing.TB, object any, path ...string) string {
	t.Helper()
	text, isJSON := object.([]byte)
	if !isJSON {
		var err error
		text, err = json.Marshal(object)
		expect.NoError(t, err)
	}
	for _, name := range path {
		var fields map[string]json.RawMessage
		expect.NoError(t, json.Unmarshal(text, &fields))
		found, ok := fields[name]
		if !ok {
			return "null"
		}
		text = found
	}
	return string(text)
}

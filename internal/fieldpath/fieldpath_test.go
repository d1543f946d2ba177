package fieldpath_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/test/expect"
)

func TestParse_StepByStep(t *testing.T) {
	got, err := fieldpath.Parse(".spec.toppings[*].annotations['a.b/c'].x")
	want := []fieldpath.Step{{Name: "spec"}, {Name: "toppings"}, {All: true}, {Name: "annotations"}, {Name: "a.b/c", Key: true}, {Name: "x"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Text that is not a path is an error that names it.
func TestParse_NoPath(t *testing.T) {
	for _, path := range []string{"", ".", "a..b", "a.", "[", "a[", "a[]", "a[0]", "a['b'", "a['']", "a]b", "a.*", "a[*]b", "a.b/c"} {
		if steps, err := fieldpath.Parse(path); err == nil || !strings.Contains(err.Error(), `"`+path+`": `) {
			t.Errorf("%q: got %v, %v", path, steps, err)
		}
	}
}

type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              *spec `json:"spec"`
}

type spec struct {
	Items   []item                       `json:"items"`
	Sizes   map[string]resource.Quantity `json:"sizes"`
	Skipped string                       `json:"-"`
}

type item struct {
	//lint:ignore U1000 encoding/json passes over it
	*item
	Name string
}

// The error says where a path leaves the type.
func TestCheck(t *testing.T) {
	for path, want := range map[string]string{
		"kind":                         "",
		"spec.items":                   "",
		"spec.items[*].Name":           "",
		"spec.items[*].Nam":            `spec.items[*].Nam: fieldpath_test.item has no field "Nam"`,
		"spec.sizes.small":             "",
		"metadata.annotations['a/b']":  "",
		"spec.sizes.small.x":           "spec.sizes.small.x: resource.Quantity has no fields",
		"spec.items.Name":              "spec.items.Name: []fieldpath_test.item has no fields",
		"spec.Skipped":                 `spec.Skipped: fieldpath_test.spec has no field "Skipped"`,
		"spec.itmes":                   `spec.itmes: fieldpath_test.spec has no field "itmes"`,
		"spec[*]":                      "spec[*]: fieldpath_test.spec is not a list or map",
		"metadata.name.x":              "metadata.name.x: string has no fields",
		"metadata.creationTimestamp.x": "metadata.creationTimestamp.x: v1.Time has no fields",
	} {
		steps, err := fieldpath.Parse(path)
		expect.NoError(t, err)
		got := ""
		if err := fieldpath.Check(reflect.TypeFor[*thing](), path, steps); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// FuzzParse checks that what is read is a path of steps that have names.
func FuzzParse(f *testing.F) {
	f.Add("spec.toppings[*].annotations['a.b/c']")
	f.Fuzz(func(t *testing.T, path string) {
		steps, err := fieldpath.Parse(path)
		if err != nil {
			return
		}
		if len(steps) == 0 {
			t.Errorf("%q has no steps", path)
		}
		for _, s := range steps {
			if s.All == (s.Name != "") {
				t.Errorf("%q has the step %+v", path, s)
			}
		}
	})
}

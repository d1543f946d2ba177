package scheme

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck_FieldsOfOneJSONName(t *testing.T) {
	// The type is made here, because go vet would not let it be written.
	twins := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
		{Name: "B", Type: reflect.TypeFor[string](), Tag: `json:"x,omitempty"`},
	})
	if diff := cmp.Diff([]string{"Twins.B has the JSON name of A: neither is stored"}, faults(twins)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheck_EmbeddedFieldsOfOneJSONName(t *testing.T) {
	type (
		Left struct {
			A string `json:"x"`
		}
		Right struct {
			B string `json:"x"`
		}
		Names []string
	)
	twins := reflect.StructOf([]reflect.StructField{
		{Name: "Left", Type: reflect.TypeFor[Left](), Anonymous: true},
		{Name: "Right", Type: reflect.TypeFor[Right](), Anonymous: true},
		{Name: "Names", Type: reflect.TypeFor[Names](), Anonymous: true},
	})
	want := []string{"Twins.Right.B has the JSON name of Left.A: neither is stored", "Twins.Names has no name in its JSON tag"}
	if diff := cmp.Diff(want, faults(twins)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	hidden := reflect.StructOf([]reflect.StructField{
		{Name: "Left", Type: reflect.TypeFor[Left](), Anonymous: true},
		{Name: "C", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
	})
	if got := faults(hidden); got != nil {
		t.Errorf("a field that hides another one: %q", got)
	}
}

func faults(t reflect.Type) (found []string) {
	checkTags(t, "Twins", map[reflect.Type]bool{}, func(path, fault string) { found = append(found, path+" "+fault) })
	return found
}

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
	var got []string
	checkTags(twins, "Twins", map[reflect.Type]bool{}, func(path, fault string) { got = append(got, path+" "+fault) })
	if diff := cmp.Diff([]string{"Twins.B has the JSON name of A: neither is stored"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package roundtrip

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// sameValue says whether two objects are equal as [equality.Semantic] has it, which is slow
// and mostly not needed. What is nil differs from what is empty only if it is strict.
func sameValue(a, b runtime.Object, strict bool) bool {
	switch {
	case reflect.DeepEqual(a, b):
		return true
	case strict:
		return equality.Semantic.DeepEqualWithNilDifferentFromEmpty(a, b)
	default:
		return equality.Semantic.DeepEqual(a, b)
	}
}

// differ returns how two objects differ that are not the same: by their JSON, or by what
// that does not show.
func differ(want, got runtime.Object, strict bool) (f *failure) {
	defer func() {
		if v := recover(); v != nil { // cmp cannot compare them
			f = &failure{diff: fmt.Sprintf("- %#v\n+ %#v", want, got)}
		}
	}()
	wanted, errWant := json.Marshal(want)
	text, errGot := json.Marshal(got)
	if errWant == nil && errGot == nil {
		if f := compare(wanted, text); f != nil {
			return f
		}
	}
	options := cmp.Options{
		cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
		cmp.Comparer(func(a, b labels.Selector) bool { return a.String() == b.String() }),
		cmp.Comparer(func(a, b fields.Selector) bool { return a.String() == b.String() }),
	}
	if !strict {
		options = append(options, cmpopts.EquateEmpty())
	}
	return &failure{diff: cmp.Diff(want, got, options)}
}

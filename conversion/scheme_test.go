package conversion_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// internalThing is the internal version of Thing: it has no JSON tags.
type internalThing struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Parts []string
}

func (*internalThing) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

// addThingConversions registers functions as conversion-gen does it.
func addThingConversions(s *runtime.Scheme) error {
	return errors.Join(
		s.AddGeneratedConversionFunc((*V1)(nil), (*internalThing)(nil), func(a, b any, _ apiconversion.Scope) error {
			in, out := a.(*V1), b.(*internalThing)
			out.ObjectMeta = in.ObjectMeta
			out.Parts = strings.Split(in.Value, ",")
			return nil
		}),
		s.AddGeneratedConversionFunc((*internalThing)(nil), (*V1)(nil), func(a, b any, _ apiconversion.Scope) error {
			in, out := a.(*internalThing), b.(*V1)
			out.ObjectMeta = in.ObjectMeta
			out.Value = strings.Join(in.Parts, ",")
			return nil
		}),
		s.AddConversionFunc((*V2)(nil), (*internalThing)(nil), func(a, b any, _ apiconversion.Scope) error {
			in, out := a.(*V2), b.(*internalThing)
			out.ObjectMeta = in.ObjectMeta
			out.Parts = strings.Split(in.Value, ";")
			return nil
		}),
		s.AddConversionFunc((*internalThing)(nil), (*V2)(nil), func(a, b any, _ apiconversion.Scope) error {
			in, out := a.(*internalThing), b.(*V2)
			out.ObjectMeta = in.ObjectMeta
			out.Value = strings.Join(in.Parts, ";")
			return nil
		}))
}

// Functions of a scheme convert through the internal version.
func TestAddSchemeFunctions_InternalVersion(t *testing.T) {
	internal := schema.GroupVersionKind{Group: "example.com", Version: runtime.APIVersionInternal, Kind: "Thing"}
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(thingVersion("v1").WithKind("Thing"), &V1{})
	s.AddKnownTypeWithName(thingVersion("v2").WithKind("Thing"), &V2{})
	s.AddKnownTypeWithName(internal, &internalThing{})
	expect.NoError(t, addThingConversions(s))
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSchemeFunctions(reg, internal))
	expect.NoError(t, reg.Check())
	got := convert(t, reg, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name": "x","managedFields":[]},"value":"a,b"}`, thingVersion("v2"))
	if diff := cmp.Diff(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name": "x","managedFields":[]},"value":"a;b"}`, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Missing functions of a scheme are named.
func TestAddSchemeFunctions_MissingFunctions(t *testing.T) {
	s := thingScheme()
	expect.NoError(t, s.AddConversionFunc((*V1)(nil), (*V2)(nil), func(any, any, apiconversion.Scope) error { panic("not with an empty object") }))
	err := conversion.AddSchemeFunctions(conversion.NewRegistry(s), thingVersion("v2").WithKind("Thing"))
	if err == nil {
		t.Fatal("nothing is missing")
	}
	want := []string{
		"conversion: the scheme has no function from conversion_test.thing[int16] to conversion_test.thing[int8]",
		"conversion: the scheme has no function from conversion_test.thing[int32] to conversion_test.thing[int16]",
		"conversion: the scheme has no function from conversion_test.thing[int16] to conversion_test.thing[int32]",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for kind, want := range map[string]string{"Nothing": "is not registered in the scheme", "Lonely": "has no other version in the scheme"} {
		err := conversion.AddSchemeFunctions(conversion.NewRegistry(s), thingVersion("v1").WithKind(kind))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", kind, err, want)
		}
	}
}

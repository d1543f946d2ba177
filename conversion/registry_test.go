package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// definition returns the definition of Thing with versions that are served; an
// exclamation mark says which is stored, brackets that a version is not served.
func definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things"}
	for _, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: strings.Trim(v, "![]"), Served: !strings.HasPrefix(v, "["), Storage: strings.Contains(v, "!"),
		})
	}
	return crd
}

// textOfDefinition returns what a file has of a definition.
func textOfDefinition(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) []byte {
	t.Helper()
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	text, err := json.Marshal(crd)
	expect.NoError(t, err)
	return text
}

// Check compares the registry with a definition.
func TestCheck_Definition(t *testing.T) {
	reg := conversion.NewRegistry(thingScheme())
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, note[int8, int16](""), note[int16, int8]("")),
		conversion.AddSpoke(reg, note[int32, int16](""), note[int16, int32]("")),
	))
	other := definition("v1!", "v2")
	other.Spec.Names.Kind = "Other"
	same := definition("v1!", "v2")
	same.Spec.Names.Kind = "Other"
	same.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	hooked := same.DeepCopy()
	hooked.Spec.Conversion.Strategy = apiextensionsv1.WebhookConverter
	single := definition("v1!")
	single.Spec.Names.Kind = "Other"
	stored := definition("v1", "v2", "v3!")
	stored.Status.StoredVersions = []string{"v0", "v3"}
	none := definition("v1", "v2", "v3!")
	none.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	strange := definition("v1", "v2", "v3!")
	strange.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v2"}},
	}
	good := definition("v1", "[v2]", "v3!")
	good.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v2", "v1beta1"}},
	}
	for name, c := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want []string
	}{
		"the same versions":          {definition("v1", "v2", "v3!"), nil},
		"a version that is not used": {good, nil},
		"one more version":           {definition("v1", "v2", "v3!", "v4"), []string{"version v4 is served or stored, but the registry has no conversion for this version"}},
		"one less":                   {definition("v1", "v2!"), []string{"the registry converts version v3, which is not defined"}},
		"stored from before":         {stored, []string{"version v0 is served or stored, but the registry has no conversion for this version"}},
		"another kind":               {other, []string{"the registry has no conversions of kind Other.example.com: add them, or set spec.conversion.strategy to None if only apiVersion differs"}},
		"another kind, None":         {same, nil},
		"another kind, Webhook":      {hooked, []string{"the registry has no conversions of kind Other.example.com: add them, or set spec.conversion.strategy to None if only apiVersion differs"}},
		"a kind of one version":      {single, nil},
		"no webhook":                 {none, []string{"spec.conversion.strategy is None: the webhook would not be called"}},
		"unknown reviews":            {strange, []string{"spec.conversion.webhook.conversionReviewVersions has neither v1 nor v1beta1"}},
	} {
		var got []string
		if err := reg.Check(textOfDefinition(t, c.crd)); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		for i := range c.want {
			c.want[i] = "conversion: CustomResourceDefinition things.example.com: " + c.want[i]
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCheck_TextsWithoutDefinition(t *testing.T) {
	reg := conversion.NewRegistry(thingScheme())
	expect.NoError(t, conversion.AddSpoke(reg, note[int8, int16](""), note[int16, int8]("")))
	good := string(textOfDefinition(t, definition("v1", "v2!")))
	err := reg.Check([]byte(good), nil, []byte(good+"\n---\nkind: ConfigMap\napiVersion: v1\n"))
	expect.ErrorContains(t, err, "conversion: definitions, text 2: no CustomResourceDefinition found", `conversion: definitions, text 3: the document of line 2: kind "ConfigMap"`)
}

// V1, V2 and V3 are three versions of the kind Thing.
type (
	thing[T any] struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Value             string `json:"value,omitempty"`
		_                 [0]T
	}
	V1 = thing[int8]
	V2 = thing[int16]
	V3 = thing[int32]

	// NoMeta is a kind without metadata.
	NoMeta struct {
		metav1.TypeMeta `json:",inline"`
	}
)

func (*thing[T]) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*NoMeta) DeepCopyObject() runtime.Object   { panic("conversion must not copy") }

func thingVersion(version string) schema.GroupVersion {
	return schema.GroupVersion{Group: "example.com", Version: version}
}

func thingScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(thingVersion("v1").WithKind("Thing"), &V1{})
	s.AddKnownTypeWithName(thingVersion("v2").WithKind("Thing"), &V2{})
	s.AddKnownTypeWithName(thingVersion("v3").WithKind("Thing"), &V3{})
	s.AddKnownTypeWithName(thingVersion("v1").WithKind("Lonely"), &NoMeta{})
	return s
}

// note returns a function that appends to the value, so that the way an object
// went can be read off it.
func note[In, Out any](text string) func(context.Context, *thing[In], *thing[Out]) error {
	return func(_ context.Context, in *thing[In], out *thing[Out]) error {
		out.Value = in.Value + text
		return nil
	}
}

// Spokes convert through the hub.
func TestAddSpoke_ThroughTheHub(t *testing.T) {
	reg := conversion.NewRegistry(thingScheme())
	expect.NoError(t, conversion.AddSpoke(reg, note[int8, int16](">2"), note[int16, int8](">1")))
	expect.NoError(t, conversion.AddSpoke(reg, note[int32, int16](">2"), note[int16, int32](">3")))
	if err := reg.Check(); err != nil {
		t.Error(err)
	}
	for to, want := range map[string]string{"v1": "1", "v2": "1>2", "v3": "1>2>3"} {
		got := convert(t, reg, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},"value":"1"}`, thingVersion(to))
		if diff := cmp.Diff(`{"apiVersion":"example.com/`+to+`","kind":"Thing","metadata":{},"value":"`+want+`"}`, got); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", to, diff)
		}
	}
}

// Each function on the way sees the version of its object.
func TestFunction_VersionOfItsObject(t *testing.T) {
	reg := conversion.NewRegistry(thingScheme())
	seen := ""
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, func(_ context.Context, in *V1, out *V2) error { out.TypeMeta = in.TypeMeta; return nil }, note[int16, int8]("")),
		conversion.AddSpoke(reg, note[int32, int16](""), func(_ context.Context, in *V2, _ *V3) error { seen = in.APIVersion; return nil }),
	))
	convert(t, reg, `{"apiVersion":"example.com/v1","kind":"Thing"}`, thingVersion("v3"))
	if seen != "example.com/v2" {
		t.Errorf("the second function sees %s", seen)
	}
}

// A spoke that cannot be is refused.
func TestAddSpoke_Impossible(t *testing.T) {
	s := thingScheme()
	s.AddKnownTypeWithName(thingVersion("v9").WithKind("Thing"), &alpha{})
	s.AddKnownTypeWithName(thingVersion("v9").WithKind("Other"), &alpha{})
	s.AddKnownTypeWithName(thingVersion("v2").WithKind("Other"), &beta{})
	for name, c := range map[string]struct {
		add  func(*conversion.Registry) error
		want []string
	}{
		"a type that the scheme does not know": {
			func(r *conversion.Registry) error {
				return conversion.AddSpoke(r, func(context.Context, *thing[uint8], *thing[uint16]) error { return nil }, note[uint16, uint8](""))
			},
			[]string{"type *conversion_test.thing[uint8] is not registered in the scheme", "type *conversion_test.thing[uint16] is not registered in the scheme"},
		},
		"a type with two names": {
			func(r *conversion.Registry) error {
				return conversion.AddSpoke(r, func(context.Context, *alpha, *beta) error { return nil }, copyFromHub)
			},
			[]string{"type *v1alpha1.Pizza has several kinds in the scheme: [example.com/v9, Kind="},
		},
		"a type without metadata": {
			func(r *conversion.Registry) error {
				f := func(context.Context, *NoMeta, *NoMeta) error { return nil }
				return conversion.AddSpoke(r, f, f)
			},
			[]string{"*conversion_test.NoMeta does not embed metav1.ObjectMeta"},
		},
		"two kinds": {
			func(r *conversion.Registry) error {
				return conversion.AddSpoke(r, func(context.Context, *beta, *V2) error { return nil }, func(context.Context, *V2, *beta) error { return nil })
			},
			[]string{"example.com/v2, Kind=Other and example.com/v2, Kind=Thing are not two versions of one kind"},
		},
		"one version": {
			func(r *conversion.Registry) error {
				return conversion.AddSpoke(r, note[int8, int8](""), note[int8, int8](""))
			},
			[]string{"are not two versions of one kind"},
		},
		"an interface": {
			func(r *conversion.Registry) error {
				f := func(context.Context, runtime.Object, runtime.Object) error { return nil }
				return conversion.AddSpoke(r, f, f)
			},
			[]string{"type runtime.Object, expected a pointer to a struct"},
		},
		"one function": {
			func(r *conversion.Registry) error {
				return conversion.AddSpoke(r, note[int8, int16](""), (func(context.Context, *V2, *V1) error)(nil))
			},
			[]string{"example.com/v1, Kind=Thing needs both functions"},
		},
		"a second time": {
			func(r *conversion.Registry) error {
				if err := conversion.AddSpoke(r, note[int8, int16](""), note[int16, int8]("")); err != nil {
					t.Error(err)
				}
				return conversion.AddSpoke(r, note[int8, int16](""), note[int16, int8](""))
			},
			[]string{"the conversions between example.com/v1, Kind=Thing and version v2 have been added before"},
		},
		"a second hub": {
			func(r *conversion.Registry) error {
				if err := conversion.AddSpoke(r, note[int8, int16](""), note[int16, int8]("")); err != nil {
					t.Error(err)
				}
				return conversion.AddSpoke(r, note[int16, int32](""), note[int32, int16](""))
			},
			[]string{"cannot have the hub v3, because the kind has the hub v2: pass the function to the hub first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.add(conversion.NewRegistry(s))
			if err == nil {
				t.Fatal("it was added")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

// Which versions of Other are in the cluster, and whether they differ, only its definition
// says.
func TestCheck_KindWithoutConversions(t *testing.T) {
	s := thingScheme()
	s.AddKnownTypeWithName(thingVersion("v1").WithKind("Other"), &thing[uint8]{})
	s.AddKnownTypeWithName(thingVersion("v2").WithKind("Other"), &thing[uint16]{})
	reg := conversion.NewRegistry(s)
	if err := errors.Join(
		conversion.AddSpoke(reg, note[int8, int16](""), note[int16, int8]("")),
		conversion.AddSpoke(reg, note[int32, int16](""), note[int16, int32]("")),
		reg.Check(),
	); err != nil {
		t.Error(err)
	}
}

func TestCheck_NamesEveryMissingConversion(t *testing.T) {
	s := thingScheme()
	s.AddKnownTypeWithName(thingVersion("v4").WithKind("Thing"), &thing[int64]{})
	s.AddKnownTypeWithName(thingVersion(runtime.APIVersionInternal).WithKind("Thing"), &thing[uint64]{}) // never needs one
	reg := conversion.NewRegistry(s)
	if err := reg.Check(); err == nil || !strings.Contains(err.Error(), "has no conversions") {
		t.Errorf("an empty registry: %v", err)
	}
	expect.NoError(t, conversion.AddSpoke(reg, note[int8, int16](""), note[int16, int8]("")))
	var want []string
	for _, missing := range []string{"v3", "v4"} {
		want = append(want, "conversion: version "+missing+" of kind Thing.example.com is in the scheme, but has no conversions: add them")
	}
	err := reg.Check()
	if err == nil {
		t.Fatal("no fault was found")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	defer func() {
		if got, ok := recover().(error); !ok || got.Error() != err.Error() {
			t.Errorf("NewHandler panicked with %v", got)
		}
	}()
	conversion.NewHandler(reg)
	t.Error("NewHandler returned for an incomplete registry")
}

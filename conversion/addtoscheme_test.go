package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

// A decoder of the scheme, such as one for component configuration, converts what it reads.
func ExampleRegistry_AddToScheme() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, copyToHub, copyFromHub); err != nil {
		panic(err)
	}
	if err := reg.AddToScheme(s); err != nil {
		panic(err)
	}
	codecs := serializer.NewCodecFactory(s)
	decoder := codecs.DecoderToVersion(codecs.UniversalDeserializer(), v1beta1.GroupVersion)
	obj, _, err := decoder.Decode([]byte(`
apiVersion: restaurant.programming-kubernetes.info/v1alpha1
kind: Pizza
metadata:
  name: margherita
spec:
  toppings: [tomato, mozzarella]
`), nil, nil)
	pizza := obj.(*v1beta1.Pizza)
	fmt.Println(pizza.Name, pizza.Spec.Toppings[1].Name, err)
	// Output: margherita mozzarella <nil>
}

func inScheme(t *testing.T, reg *conversion.Registry) *runtime.Scheme {
	t.Helper()
	s := pizzaScheme(t)
	expect.NoError(t, reg.AddToScheme(s))
	return s
}

func TestAddToScheme_CopiesMetadata(t *testing.T) {
	for name, lossless := range map[string]bool{"directly": false, "as JSON": true} {
		t.Run(name, func(t *testing.T) {
			reg := registry(t, func(ctx context.Context, in *alpha, out *beta) error {
				out.Labels = map[string]string{"a": "2"}
				return copyToHub(ctx, in, out)
			}, nil)
			if lossless {
				expect.NoError(t, conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza")))
			}
			cost := 2.5
			in := &alpha{
				TypeMeta: metav1.TypeMeta{Kind: "Pizza"}, // as codecs leave it
				ObjectMeta: metav1.ObjectMeta{
					Name: "a", Namespace: "b", UID: "c", Generation: 3, Labels: map[string]string{"a": "1"}, Finalizers: []string{"x/y"},
					ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1"}},
				},
				Spec: v1alpha1.PizzaSpec{Toppings: []string{"tomato"}}, Status: v1alpha1.PizzaStatus{Cost: &cost},
			}
			before := in.DeepCopy()
			out := &beta{TypeMeta: metav1.TypeMeta{Kind: "stays"}, Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: "goes"}}}}
			expect.NoError(t, inScheme(t, reg).Convert(in, out, nil))
			want := &beta{TypeMeta: metav1.TypeMeta{Kind: "stays"}, ObjectMeta: *in.ObjectMeta.DeepCopy(),
				Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: "tomato"}}}, Status: v1beta1.PizzaStatus{Cost: &cost}}
			want.Labels["a"] = "2"
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
		})
	}
}

// The fields that a spoke cannot express are kept.
func TestAddToScheme_Lossless(t *testing.T) {
	reg := registry(t, nil, nil)
	expect.NoError(t, conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza")))
	s := inScheme(t, reg)
	in := &beta{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: "ham", Quantity: new(int32(3))}}}}
	spoke, back := &alpha{}, &beta{}
	expect.NoError(t, errors.Join(s.Convert(in, spoke, nil), s.Convert(spoke, back, nil)))
	if diff := cmp.Diff(in, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAddToScheme_ConvertsLists(t *testing.T) {
	s := inScheme(t, registry(t, nil, nil))
	for name, in := range map[string]*v1alpha1.PizzaList{
		"two": {ListMeta: metav1.ListMeta{ResourceVersion: "5", Continue: "x"}, Items: []alpha{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}},
		"nil": {},
	} {
		out := &v1beta1.PizzaList{Items: []beta{{}}}
		if err := s.Convert(in, out, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := &v1beta1.PizzaList{ListMeta: in.ListMeta}
		for _, item := range in.Items {
			want.Items = append(want.Items, beta{ObjectMeta: item.ObjectMeta})
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAddToScheme_NamesTheObjectOnce(t *testing.T) {
	const prefix = "cannot convert Pizza b/a from restaurant.programming-kubernetes.info/v1alpha1 to restaurant.programming-kubernetes.info/v1beta1: "
	for want, f := range map[string]toHub{
		prefix + "no dough":     func(context.Context, *alpha, *beta) error { return errors.New("no dough") },
		prefix + "panic: dough": func(context.Context, *alpha, *beta) error { panic("dough") },
		prefix + "the conversion function changed metadata.name: only labels and annotations may be changed": func(_ context.Context, _ *alpha, out *beta) error {
			out.Name = "c"
			return nil
		},
	} {
		for _, lossless := range []bool{false, true} {
			reg := registry(t, f, nil)
			if lossless {
				expect.NoError(t, conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza")))
			}
			err := inScheme(t, reg).Convert(&v1alpha1.PizzaList{Items: []alpha{{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}}}, &v1beta1.PizzaList{}, nil)
			if err == nil || err.Error() != want {
				t.Errorf("lossless %t: got %v, want %s", lossless, err, want)
			}
		}
	}
}

// hub is an internal version, which has no JSON tags.
type hub struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Names []string
}

func (h *hub) DeepCopyObject() runtime.Object { c := *h; return &c }

func TestAddToScheme_InternalHub(t *testing.T) {
	s := pizzaScheme(t)
	internal := v1beta1.GroupVersion
	internal.Version = runtime.APIVersionInternal
	s.AddKnownTypeWithName(internal.WithKind("Pizza"), &hub{})
	reg := conversion.NewRegistry(s)
	err := errors.Join(
		conversion.AddSpoke(reg,
			func(_ context.Context, in *alpha, out *hub) error { out.Names = in.Spec.Toppings; return nil },
			func(_ context.Context, in *hub, out *alpha) error { out.Spec.Toppings = in.Names; return nil }),
		conversion.AddSpoke(reg,
			func(_ context.Context, in *beta, out *hub) error {
				for _, topping := range in.Spec.Toppings {
					out.Names = append(out.Names, topping.Name)
				}
				return nil
			},
			func(_ context.Context, in *hub, out *beta) error {
				for _, name := range in.Names {
					out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
				}
				return nil
			}),
		reg.AddToScheme(s))
	expect.NoError(t, err)
	in := &alpha{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PizzaSpec{Toppings: []string{"ham"}}}
	obj, err := s.ConvertToVersion(in, internal)
	expect.NoError(t, err)
	if diff := cmp.Diff(&hub{ObjectMeta: in.ObjectMeta, Names: []string{"ham"}}, obj); diff != "" {
		t.Errorf("internal (-want +got):\n%s", diff)
	}
	out := &beta{}
	expect.NoError(t, s.Convert(in, out, nil))
	if diff := cmp.Diff(&beta{ObjectMeta: in.ObjectMeta, Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: "ham"}}}}, out); diff != "" {
		t.Errorf("through the hub (-want +got):\n%s", diff)
	}
}

func TestAddToScheme_MissingType(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1beta1.GroupVersion, &hub{})
	s.AddKnownTypeWithName(v1beta1.GroupVersion.WithKind("Pizza"), &hub{})
	err := registry(t, nil, nil).AddToScheme(s)
	expect.ErrorContains(t, err,
		"conversion: the scheme does not have restaurant.programming-kubernetes.info/v1alpha1, Kind=Pizza, which the registry converts",
		"conversion: the scheme has restaurant.programming-kubernetes.info/v1beta1, Kind=Pizza as conversion_test.hub, which is not the type that the registry converts",
	)
}

// AddToScheme keeps the functions that AddSchemeFunctions took from the scheme.
func TestAddToScheme_SchemeFunctions(t *testing.T) {
	s := pizzaScheme(t)
	calls := 0
	err := errors.Join(
		s.AddConversionFunc((*alpha)(nil), (*beta)(nil), func(in, out any, _ apiconversion.Scope) error {
			calls++
			out.(*beta).ObjectMeta = in.(*alpha).ObjectMeta
			return nil
		}),
		s.AddConversionFunc((*beta)(nil), (*alpha)(nil), func(in, out any, _ apiconversion.Scope) error { return nil }))
	expect.NoError(t, err)
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSchemeFunctions(reg, v1beta1.GroupVersion.WithKind("Pizza")))
	expect.NoError(t, reg.AddToScheme(s))
	calls = 0 // AddSchemeFunctions has tried it
	list := &v1alpha1.PizzaList{Items: []v1alpha1.Pizza{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	got, err := s.ConvertToVersion(list, v1beta1.GroupVersion)
	expect.NoError(t, err)
	if name := got.(*v1beta1.PizzaList).Items[0].Name; name != "a" || calls != 1 {
		t.Errorf("got name %q after %d calls", name, calls)
	}
}

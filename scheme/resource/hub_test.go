package resource

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// served returns the types and conversions of package pizza, without an internal version.
func served(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := pizza.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := pizza.NewRegistry(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// servedHub returns the resource of pizzas, whose hub is v1beta1, and its scheme.
func servedHub(t *testing.T, opts ...Option) (*runtime.Scheme, *Resource) {
	t.Helper()
	s := served(t)
	r, err := New[*v1beta1.Pizza](s, "pizzas", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestServedHub_AddsInternalVersion(t *testing.T) {
	s, r := servedHub(t)
	if diff := cmp.Diff([]schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion}, r.versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if err := scheme.Check(s); err != nil {
		t.Errorf("after pizzas, before toppings: %v", err)
	}
	if _, err := New[*v1alpha1.Topping](s, "toppings"); err != nil {
		t.Error(err)
	}
	if _, err := New[*v1beta1.Pizza](s, "pizzas"); err != nil {
		t.Errorf("a second call: %v", err)
	}
	if err := scheme.Check(s); err != nil {
		t.Errorf("after all kinds: %v", err)
	}
	codec, _ := Codec(s)
	for _, text := range []string{
		`{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"a"},"spec":{"toppings":["ham","ham"]}}`,
		`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":2}]}}`,
	} {
		obj := r.newObject()
		got, _, err := codec.Decode([]byte(text), nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		if got != obj || !obj.GetObjectKind().GroupVersionKind().Empty() || metadata(obj).Name != "a" {
			t.Errorf("decodes to %#v", got)
		}
		stored, err := runtime.Encode(codec, obj)
		want := `{"kind":"Pizza","apiVersion":"restaurant.programming-kubernetes.info/v1beta1","metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":2}]}}`
		if err != nil || strings.TrimSpace(string(stored)) != want {
			t.Errorf("%s is stored as %s, %v", text, stored, err)
		}
	}
}

func TestServedHub_ConvertsLists(t *testing.T) {
	s, _ := servedHub(t)
	list := &v1alpha1.PizzaList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1alpha1.Pizza{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PizzaSpec{Toppings: []string{"ham", "ham"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	}}
	held, err := s.ConvertToVersion(list, internal)
	if err != nil {
		t.Fatal(err)
	}
	for _, items := range [][]v1alpha1.Pizza{nil, {}} {
		out := &v1alpha1.PizzaList{}
		if held, err := s.ConvertToVersion(&v1alpha1.PizzaList{Items: items}, internal); err != nil || s.Convert(held.DeepCopyObject(), out, nil) != nil || (out.Items == nil) != (items == nil) {
			t.Errorf("%#v: got %#v, %v", items, out.Items, err)
		}
	}
	back, err := s.ConvertToVersion(held.DeepCopyObject(), v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PizzaList"))
	if diff := cmp.Diff(runtime.Object(list), back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	held.(*hubList[*v1beta1.Pizza]).Items[0].Object.Spec.Toppings[0].Quantity = new(int32(0))
	_, err = s.ConvertToVersion(held, v1alpha1.GroupVersion)
	if want := "cannot convert Pizza a from restaurant.programming-kubernetes.info/v1beta1 to restaurant.programming-kubernetes.info/v1alpha1: spec.toppings[0].quantity: Invalid value: 0: must be at least 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Columns and fields get an object with its metadata.
func TestServedHub_UnwrapsForAuthor(t *testing.T) {
	s, r := servedHub(t,
		Columns(func(p *v1beta1.Pizza) []any { return []any{p.Name + ": " + p.Spec.Toppings[0].Name} }, metav1.TableColumnDefinition{Name: "Toppings"}),
		Fields(func(p *v1beta1.Pizza) fields.Set { return fields.Set{"spec.first": p.Spec.Toppings[0].Name} }))
	h := held(t, s, "ham", 1)
	table, err := r.table.ConvertToTable(t.Context(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"a", "a: ham", "<unknown>"}, table.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if set, err := r.fields(h); err != nil || set["spec.first"] != "ham" {
		t.Errorf("fields: got %v, %v", set, err)
	}
	if _, err := r.fields(&v1alpha1.Pizza{}); err == nil {
		t.Error("fields of another type: got no error")
	}
}

func TestServedHub_KeepsStatusAndCountsGenerations(t *testing.T) {
	s, r := servedHub(t)
	old := held(t, s, "ham", 1)
	for _, c := range []struct {
		first      string
		generation int64
	}{{"ham", 0}, {"egg", 1}} {
		obj := held(t, s, c.first, 2)
		r.strategy.PrepareForUpdate(t.Context(), obj, old)
		if *obj.Object.Status.Cost != 1 || obj.Object.Spec.Toppings[0].Name != c.first || obj.Generation != c.generation {
			t.Errorf("an update to %s: %+v, generation %d", c.first, obj.Object, obj.Generation)
		}
	}
	obj := held(t, s, "egg", 2)
	statusStrategy{r.strategy}.PrepareForUpdate(t.Context(), obj, old)
	if *obj.Object.Status.Cost != 2 || obj.Object.Spec.Toppings[0].Name != "ham" {
		t.Errorf("an update of the status: %+v", obj.Object)
	}
	r.strategy.PrepareForCreate(t.Context(), obj)
	if obj.Object.Status.Cost != nil || obj.Generation != 1 {
		t.Errorf("a creation: %+v, generation %d", obj.Object, obj.Generation)
	}
	if diff := cmp.Diff(held(t, s, "ham", 1), old); diff != "" {
		t.Errorf("the old object has changed (-before +after):\n%s", diff)
	}
}

// held returns a pizza as the server holds it.
func held(t *testing.T, s *runtime.Scheme, first string, cost float64) *hub[*v1beta1.Pizza] {
	t.Helper()
	obj, err := s.ConvertToVersion(&v1beta1.Pizza{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: first}}},
		Status:     v1beta1.PizzaStatus{Cost: &cost},
	}, internal)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*hub[*v1beta1.Pizza])
}

// A runtime.Scheme creates hubs without an object.
func TestServedHub_Zero(t *testing.T) {
	s, _ := servedHub(t)
	h, err := s.New(internal.WithKind("Pizza"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ConvertToVersion(h.DeepCopyObject(), v1beta1.GroupVersion)
	want := &v1beta1.Pizza{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Pizza"}}
	if diff := cmp.Diff(runtime.Object(want), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(any(&v1beta1.Pizza{}), withoutMetadata(h)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

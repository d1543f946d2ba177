package resource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// ownPizza is the internal version of a pizza.
type ownPizza struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   []string
	Status string
}

type ownPizzaList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []ownPizza
}

func (h *ownPizza) DeepCopyObject() runtime.Object     { c := *h; c.ObjectMeta = *h.DeepCopy(); return &c }
func (l *ownPizzaList) DeepCopyObject() runtime.Object { c := *l; return &c }

var internal = schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: runtime.APIVersionInternal}

// pizzas returns the types of pizzas in two versions and the internal one.
func pizzas() *runtime.Scheme {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
		scheme.APIServer(),
		scheme.Functions(func(s *runtime.Scheme) error {
			s.AddKnownTypeWithName(internal.WithKind("Pizza"), &ownPizza{})
			s.AddKnownTypeWithName(internal.WithKind("PizzaList"), &ownPizzaList{})
			reg := conversion.NewRegistry(s)
			if err := conversion.AddSpoke(reg, fromAlpha, toAlpha); err != nil {
				return err
			}
			if err := conversion.AddSpoke(reg, fromBeta, toBeta); err != nil {
				return err
			}
			return reg.AddToScheme(s)
		}))
	if err != nil {
		panic(err)
	}
	return s
}

func fromAlpha(_ context.Context, in *v1alpha1.Pizza, out *ownPizza) error {
	out.Spec = in.Spec.Toppings
	return nil
}

func toAlpha(_ context.Context, in *ownPizza, out *v1alpha1.Pizza) error {
	out.Spec.Toppings = in.Spec
	return nil
}

func fromBeta(_ context.Context, in *v1beta1.Pizza, out *ownPizza) error {
	for _, topping := range in.Spec.Toppings {
		out.Spec = append(out.Spec, topping.Name)
	}
	return nil
}

func toBeta(_ context.Context, in *ownPizza, out *v1beta1.Pizza) error {
	for _, name := range in.Spec {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

// required returns an error if there are no toppings.
func required(toppings int) field.ErrorList {
	if toppings > 0 {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("spec", "toppings"), "")}
}

func ExampleNew() {
	s := pizzas()
	r, err := New[*ownPizza](s, "pizzas",
		ShortNames("pz"),
		Columns(func(p *ownPizza) []any { return []any{strings.Join(p.Spec, ", ")} }, metav1.TableColumnDefinition{Name: "Toppings", Type: "string"}),
		Validate(func(_ context.Context, p, _ *v1alpha1.Pizza) field.ErrorList { return required(len(p.Spec.Toppings)) }),
		Validate(func(_ context.Context, p, _ *v1beta1.Pizza) field.ErrorList { return required(len(p.Spec.Toppings)) }))
	if err != nil {
		panic(err)
	}
	fmt.Println(r.name, r.versions)
	fmt.Println(s.Validate(context.Background(), nil, &v1beta1.Pizza{}))
	// Output:
	// pizzas.restaurant.programming-kubernetes.info [restaurant.programming-kubernetes.info/v1beta1 restaurant.programming-kubernetes.info/v1alpha1]
	// [spec.toppings: Required value]
}

func TestNew_Errors(t *testing.T) {
	other := runtime.NewScheme()
	other.AddKnownTypeWithName(internal.WithKind("Pizza"), &ownPizza{})
	noVersions := runtime.NewScheme()
	noVersions.AddKnownTypeWithName(internal.WithKind("Pizza"), &ownPizza{})
	noVersions.AddKnownTypeWithName(internal.WithKind("PizzaList"), &ownPizzaList{})
	unconverted := scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{})
	separate, err := scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}), unconverted)
	if err != nil {
		t.Fatal(err)
	}
	_, external := New[*v1beta1.Pizza](pizzas(), "pizzas")
	_, otherColumns := New[*v1beta1.Pizza](served(t), "pizzas", Columns(func(*v1alpha1.Pizza) []any { return nil }))
	_, otherFields := New[*v1beta1.Pizza](served(t), "pizzas", Fields(func(*v1alpha1.Pizza) fields.Set { return nil }))
	_, otherKind := New[*v1beta1.Pizza](served(t), "pizzas", Validate(func(_ context.Context, _, _ *v1alpha1.Topping) field.ErrorList { return nil }))
	twice := served(t)
	if _, err := New[*v1beta1.Pizza](twice, "pizzas"); err != nil {
		t.Fatal(err)
	}
	_, otherHub := New[*v1alpha1.Pizza](twice, "pizzas")
	_, noConversion := New[*v1beta1.Pizza](separate, "pizzas")
	_, unknown := New[*ownPizza](runtime.NewScheme(), "pizzas")
	_, noList := New[*ownPizza](other, "pizzas")
	_, unserved := New[*ownPizza](noVersions, "pizzas")
	for want, err := range map[string]error{
		"resource: pizzas: the internal version of Pizza is resource.ownPizza: pass that version to New instead of v1beta1.Pizza": external,
		"resource: pizzas: the scheme has no conversion between v1alpha1.Pizza and v1beta1.Pizza":                                 noConversion,
		"resource: pizzas: type *resource.ownPizza is not registered in the scheme":                                               unknown,
		"resource: pizzas: no kind \"PizzaList\" is registered for the internal version of group":                                 noList,
		"resource: pizzas: the scheme has no served version of Pizza.restaurant.programming-kubernetes.info":                      unserved,
		"resource: pizzas: the type argument of Columns is *v1alpha1.Pizza, expected one of [*v1beta1.Pizza]":                     otherColumns,
		"resource: pizzas: the type argument of Fields is *v1alpha1.Pizza, expected one of [*v1beta1.Pizza]":                      otherFields,
		"resource: pizzas: the type argument of Validate is *v1alpha1.Topping, expected one of [*v1beta1.Pizza *v1alpha1.Pizza]":  otherKind,
		"resource: pizzas: New has been called for Pizza with another type than v1alpha1.Pizza":                                   otherHub,
		"resource: no resources to install":                             Install(nil, nil, pizzas()),
		"resource: CustomResourceDefinition 1: error unmarshaling JSON": OpenAPI(&server.Config{}, pizzas(), "x", []byte("[]")),
		"resource: CustomResourceDefinition 1: x: the scheme lacks restaurant.programming-kubernetes.info/v2 Pizza, or its list": OpenAPI(&server.Config{}, pizzas(), "x", []byte(crd("v2"))),
		"resource: CustomResourceDefinition 2: x: version v1beta1 has no schema":                                                 OpenAPI(&server.Config{}, pizzas(), "x", []byte(crd("v1alpha1", "schema: {openAPIV3Schema: {type: object}}")), []byte(crd("v1beta1"))),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// crd returns a CustomResourceDefinition of one version, with what is added to it.
func crd(version string, more ...string) string {
	return "metadata: {name: x}\nspec:\n  group: " + internal.Group + "\n  names: {kind: Pizza, listKind: PizzaList}\n  versions:\n  - name: " + version + "\n    " + strings.Join(more, "\n    ") + "\n"
}

func TestStrategy_KeepsStatusAndCountsGenerations(t *testing.T) {
	r, err := New[*ownPizza](pizzas(), "pizzas")
	if err != nil {
		t.Fatal(err)
	}
	old := &ownPizza{Spec: []string{"ham"}, Status: "new"}
	old.Name = "a"
	r.strategy.PrepareForCreate(t.Context(), old)
	if old.Status != "" || old.Generation != 1 {
		t.Errorf("created: got status %q, generation %d", old.Status, old.Generation)
	}
	old.Status = "baked"
	for name, c := range map[string]struct {
		change     func(*ownPizza)
		status     bool
		generation int64
		want       string
	}{
		"a label":                 {func(h *ownPizza) { h.Labels = map[string]string{"a": "b"} }, false, 1, "baked"},
		"the spec":                {func(h *ownPizza) { h.Spec = nil }, false, 2, "baked"},
		"the status":              {func(h *ownPizza) { h.Status = "eaten" }, false, 1, "baked"},
		"the status, as such":     {func(h *ownPizza) { h.Status, h.Spec, h.Labels = "eaten", nil, map[string]string{"a": "b"} }, true, 1, "eaten"},
		"the generation, by hand": {func(h *ownPizza) { h.Generation = 9 }, false, 1, "baked"},
	} {
		obj := old.DeepCopyObject().(*ownPizza)
		c.change(obj)
		if c.status {
			statusStrategy{r.strategy}.PrepareForUpdate(t.Context(), obj, old)
			if diff := cmp.Diff([]string{"ham"}, obj.Spec); diff != "" || obj.Labels != nil {
				t.Errorf("%s: labels %v, spec (-want +got):\n%s", name, obj.Labels, diff)
			}
		} else {
			r.strategy.PrepareForUpdate(t.Context(), obj, old)
		}
		if obj.Status != c.want || obj.Generation != c.generation {
			t.Errorf("%s: got status %q, generation %d, want %q, %d", name, obj.Status, obj.Generation, c.want, c.generation)
		}
	}
}

func TestCodec_StoresThePreferredVersion(t *testing.T) {
	codec, versions := Codec(pizzas())
	text, err := runtime.Encode(codec, &ownPizza{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: []string{"ham"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `"apiVersion":"restaurant.programming-kubernetes.info/v1beta1"`; !strings.Contains(string(text), want) {
		t.Errorf("got %s, want %s", text, want)
	}
	for _, stored := range []string{string(text), `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"a"},"spec":{"toppings":["ham"]}}`} {
		obj, err := runtime.Decode(codec, []byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ham"}, obj.(*ownPizza).Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stored, diff)
		}
	}
	if kind, ok := versions.KindForGroupVersionKinds([]schema.GroupVersionKind{internal.WithKind("Pasta")}); ok {
		t.Errorf("an unknown kind is stored as %s", kind)
	}
}

func TestColumns_BetweenNameAndAge(t *testing.T) {
	r, err := New[*ownPizza](pizzas(), "pizzas", Columns(func(p *ownPizza) []any { return []any{len(p.Spec)} }, metav1.TableColumnDefinition{Name: "Toppings", Type: "integer"}))
	if err != nil {
		t.Fatal(err)
	}
	list := &ownPizzaList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []ownPizza{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: []string{"ham"}}}}
	table, err := r.table.ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Toppings", "Age"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"a", 1, "<unknown>"}, table.Rows[0].Cells); diff != "" || table.ResourceVersion != "7" {
		t.Errorf("resourceVersion %s, cells (-want +got):\n%s", table.ResourceVersion, diff)
	}
	if table, err = r.table.ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true}); err != nil || table.ColumnDefinitions != nil {
		t.Errorf("without headers: got %v, %v", table, err)
	}
	if _, err := r.table.ConvertToTable(t.Context(), &v1beta1.Pizza{}, nil); err == nil || !strings.Contains(err.Error(), "got a *v1beta1.Pizza, expected a *resource.ownPizza") {
		t.Errorf("another type: got %v", err)
	}
}

package resource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/util"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// hub is the internal version of a pizza.
type hub struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   []string
	Status string
}

type hubList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []hub
}

func (h *hub) DeepCopyObject() runtime.Object     { c := *h; c.ObjectMeta = *h.DeepCopy(); return &c }
func (l *hubList) DeepCopyObject() runtime.Object { c := *l; return &c }

var internal = schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: runtime.APIVersionInternal}

// pizzas returns the types of pizzas in two versions and the internal one.
func pizzas() *runtime.Scheme {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
		scheme.APIServer(),
		scheme.Functions(func(s *runtime.Scheme) error {
			s.AddKnownTypeWithName(internal.WithKind("Pizza"), &hub{})
			s.AddKnownTypeWithName(internal.WithKind("PizzaList"), &hubList{})
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

func fromAlpha(_ context.Context, in *v1alpha1.Pizza, out *hub) error {
	out.Spec = in.Spec.Toppings
	return nil
}

func toAlpha(_ context.Context, in *hub, out *v1alpha1.Pizza) error {
	out.Spec.Toppings = in.Spec
	return nil
}

func fromBeta(_ context.Context, in *v1beta1.Pizza, out *hub) error {
	for _, topping := range in.Spec.Toppings {
		out.Spec = append(out.Spec, topping.Name)
	}
	return nil
}

func toBeta(_ context.Context, in *hub, out *v1beta1.Pizza) error {
	for _, name := range in.Spec {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

func ExampleNew() {
	s := pizzas()
	r, err := New[*hub](s, "pizzas",
		ShortNames("pz"),
		Columns(func(p *hub) []any { return []any{strings.Join(p.Spec, ", ")} }, metav1.TableColumnDefinition{Name: "Toppings", Type: "string"}),
		Validate(func(_ context.Context, p *v1beta1.Pizza) (errs field.ErrorList) {
			if len(p.Spec.Toppings) == 0 {
				errs = append(errs, field.Required(field.NewPath("spec", "toppings"), ""))
			}
			return errs
		}))
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
	other.AddKnownTypeWithName(internal.WithKind("Pizza"), &hub{})
	noVersions := runtime.NewScheme()
	noVersions.AddKnownTypeWithName(internal.WithKind("Pizza"), &hub{})
	noVersions.AddKnownTypeWithName(internal.WithKind("PizzaList"), &hubList{})
	unconverted := scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{})
	separate, err := scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}), unconverted)
	if err != nil {
		t.Fatal(err)
	}
	_, external := New[*v1beta1.Pizza](pizzas(), "pizzas")
	_, noConversion := New[*v1beta1.Pizza](separate, "pizzas")
	_, unknown := New[*hub](runtime.NewScheme(), "pizzas")
	_, noList := New[*hub](other, "pizzas")
	_, unserved := New[*hub](noVersions, "pizzas")
	for want, err := range map[string]error{
		"resource: pizzas: the type is v1beta1.Pizza, but the internal version of Pizza is resource.hub":     external,
		"resource: pizzas: the scheme has no conversion between v1alpha1.Pizza and v1beta1.Pizza":            noConversion,
		"resource: pizzas: type *resource.hub is not registered in the scheme":                               unknown,
		"resource: pizzas: no kind \"PizzaList\" is registered for the internal version of group":            noList,
		"resource: pizzas: the scheme has no served version of Pizza.restaurant.programming-kubernetes.info": unserved,
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

// If the hub is a served version, no internal version is necessary.
func TestNew_ServedHub(t *testing.T) {
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
	r, err := New[*v1beta1.Pizza](s, "pizzas")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New[*v1alpha1.Topping](s, "toppings"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion}, r.versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if err := scheme.Check(s); err != nil {
		t.Errorf("the scheme is not valid any more: %v", err)
	}
	if _, err := pizza.NewRegistry(s); err != nil {
		t.Errorf("the types have several kinds: %v", err)
	}
	codec, _ := Codec(s)
	for _, text := range []string{
		`{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"a"},"spec":{"toppings":["ham","ham"]}}`,
		`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":2}]}}`,
	} {
		obj, err := runtime.Decode(codec, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := runtime.Encode(codec, obj)
		want := `{"kind":"Pizza","apiVersion":"restaurant.programming-kubernetes.info/v1beta1","metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":2}]}}`
		if err != nil || strings.TrimSpace(string(stored)) != want {
			t.Errorf("%s is stored as %s, %v", text, stored, err)
		}
	}
	config := &server.Config{}
	if err := OpenAPI(config, s, "x", pizza.Definitions()[0]); err != nil {
		t.Fatal(err)
	}
	_, extensions := config.OpenAPIV3Config.GetDefinitionName(util.GetCanonicalTypeName(&v1beta1.Pizza{}))
	want := []any{map[string]any{"group": v1beta1.GroupVersion.Group, "version": "v1beta1", "kind": "Pizza"}}
	if diff := cmp.Diff(want, extensions["x-kubernetes-group-version-kind"]); diff != "" {
		t.Errorf("published kinds (-want +got):\n%s", diff)
	}
}

// crd returns a CustomResourceDefinition of one version, with what is added to it.
func crd(version string, more ...string) string {
	return "metadata: {name: x}\nspec:\n  group: " + internal.Group + "\n  names: {kind: Pizza, listKind: PizzaList}\n  versions:\n  - name: " + version + "\n    " + strings.Join(more, "\n    ") + "\n"
}

func TestStrategy_KeepsStatusAndCountsGenerations(t *testing.T) {
	r, err := New[*hub](pizzas(), "pizzas")
	if err != nil {
		t.Fatal(err)
	}
	old := &hub{Spec: []string{"ham"}, Status: "new"}
	old.Name = "a"
	r.strategy.PrepareForCreate(t.Context(), old)
	if old.Status != "" || old.Generation != 1 {
		t.Errorf("created: got status %q, generation %d", old.Status, old.Generation)
	}
	old.Status = "baked"
	for name, c := range map[string]struct {
		change     func(*hub)
		status     bool
		generation int64
		want       string
	}{
		"a label":                 {func(h *hub) { h.Labels = map[string]string{"a": "b"} }, false, 1, "baked"},
		"the spec":                {func(h *hub) { h.Spec = nil }, false, 2, "baked"},
		"the status":              {func(h *hub) { h.Status = "eaten" }, false, 1, "baked"},
		"the status, as such":     {func(h *hub) { h.Status, h.Spec, h.Labels = "eaten", nil, map[string]string{"a": "b"} }, true, 1, "eaten"},
		"the generation, by hand": {func(h *hub) { h.Generation = 9 }, false, 1, "baked"},
	} {
		obj := old.DeepCopyObject().(*hub)
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
	text, err := runtime.Encode(codec, &hub{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: []string{"ham"}})
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
		if diff := cmp.Diff([]string{"ham"}, obj.(*hub).Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stored, diff)
		}
	}
	if kind, ok := versions.KindForGroupVersionKinds([]schema.GroupVersionKind{internal.WithKind("Pasta")}); ok {
		t.Errorf("an unknown kind is stored as %s", kind)
	}
}

func TestColumns_BetweenNameAndAge(t *testing.T) {
	r, err := New[*hub](pizzas(), "pizzas", Columns(func(p *hub) []any { return []any{len(p.Spec)} }, metav1.TableColumnDefinition{Name: "Toppings", Type: "integer"}))
	if err != nil {
		t.Fatal(err)
	}
	list := &hubList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []hub{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: []string{"ham"}}}}
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
	if _, err := r.table.ConvertToTable(t.Context(), &v1beta1.Pizza{}, nil); err == nil || !strings.Contains(err.Error(), "got a *v1beta1.Pizza, expected a *resource.hub") {
		t.Errorf("another type: got %v", err)
	}
}

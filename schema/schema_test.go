package schema_test

import (
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/testobj"
)

// pizza is testdata/pizza.yaml, compiled once.
var pizza = sync.OnceValue(func() *schema.Definition {
	data, err := os.ReadFile("testdata/pizza.yaml")
	if err != nil {
		panic(err)
	}
	d, err := schema.Parse(data)
	if err != nil {
		panic(err)
	}
	return d
})

// object decodes JSON as the server does.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	u := testobj.Parse(t, text)
	return u.Object
}

func messages(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

const head = `"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p"}`

// A definition says what it defines.
func TestDefinition(t *testing.T) {
	d := pizza()
	if got := d.GroupKind().String(); got != "Pizza.restaurant.example.com" {
		t.Errorf("the kind is %s", got)
	}
	if diff := cmp.Diff([]string{"v1", "v1alpha1"}, d.Versions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := d.StorageVersion(); got != "v1" {
		t.Errorf("the storage version is %s", got)
	}
	if got := d.CustomResourceDefinition(); got.Name != "pizzas.restaurant.example.com" || got.Spec.Names.ListKind != "PizzaList" {
		t.Errorf("the definition is %v", got)
	}
	for version, want := range map[string]bool{"v1": true, "v1alpha1": true, "v3": false} {
		if got := d.Version(version).Served(); got != want {
			t.Errorf("%s is served: %v", version, got)
		}
	}
	if s := d.Version("v1").Structural(); s == nil || s.Properties["spec"].Properties["size"].Default.Object != "large" {
		t.Errorf("the schema is %v", s)
	}
}

// An unknown version is an error everywhere.
func TestVersion_Unknown(t *testing.T) {
	v := pizza().Version("v3")
	want := []string{`apiVersion: Unsupported value: "v3": supported values: "v1", "v1alpha1"`}
	o := object(t, `{`+head+`}`)
	for _, errs := range []field.ErrorList{v.Validate(t.Context(), o), v.ValidateUpdate(t.Context(), o, o)} {
		if diff := cmp.Diff(want, messages(errs)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for name, f := range map[string]func(){
		"Structural": func() { v.Structural() },
		"Prune":      func() { v.Prune(nil) },
		"Default":    func() { v.Default(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				if want := "schema: Pizza.restaurant.example.com has no version v3: want one of v1, v1alpha1"; err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			}()
			f()
		})
	}
}

// Prune takes away what the schema lacks.
func TestPrune(t *testing.T) {
	o := object(t, `{`+head+`,"extra":{"a":1},"spec":{
		"toppings":[{"name":"ham","colour":"pink"}],
		"notes":{"a":{"b":{"c":1}},"list":[{"x":1}]},
		"anything":{"x":{"y":1},"known":{"a":"b","c":"d"}},
		"template":{"apiVersion":"v1","kind":"Pod","metadata":{"nonsense":true},"spec":{"x":1}}}}`)
	want := []string{"extra", "spec.anything.known.c", "spec.notes.a.b", "spec.notes.list[0].x", "spec.toppings[0].colour"}
	if diff := cmp.Diff(want, pizza().Version("v1").Prune(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object(t, `{`+head+`,"spec":{
		"toppings":[{"name":"ham"}],
		"notes":{"a":{},"list":[{}]},
		"anything":{"x":{"y":1},"known":{"a":"b"}},
		"template":{"apiVersion":"v1","kind":"Pod","metadata":{"nonsense":true},"spec":{"x":1}}}}`), o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := pizza().Version("v1").Prune(o); again != nil {
		t.Errorf("the second time it took away %v", again)
	}
}

// Defaults are set where their parent is there.
func TestDefault(t *testing.T) {
	for from, to := range map[string]string{
		`{` + head + `}`:             `{` + head + `}`,
		`{` + head + `,"spec":null}`: `{` + head + `}`,
		`{` + head + `,"spec":{"size":null,"slices":null,"crust":{},"toppings":[null,{"amount":null}]}}`: `{` + head + `,"spec":{"size":"large","crust":{"thick":false},"toppings":[null,{"amount":1}]}}`,
	} {
		o := object(t, from)
		pizza().Version("v1").Default(o)
		if diff := cmp.Diff(object(t, to), o); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
	}
}

// Validate reports what creating would.
func TestValidate_LikeCreate(t *testing.T) {
	for _, test := range []struct {
		name, object string
		want         []string
	}{
		{"a good one", `{` + head + `,"spec":{"size":"small","toppings":[{"name":"ham"}]}}`, nil},
		{"another kind", `{"apiVersion":"restaurant.example.com/v2","kind":"Pasta","metadata":{"name":"P"}}`, []string{
			`kind: Invalid value: "Pasta": must be Pizza`,
			`apiVersion: Invalid value: "restaurant.example.com/v2": must be restaurant.example.com/v1`,
		}},
		{"a rule that is broken", `{` + head + `,"spec":{"size":"small","toppings":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`, []string{
			`spec: Invalid value: a small pizza has two toppings at most`,
		}},
		{"a problem that suppresses the rules", `{` + head + `,"spec":{"size":"medium","toppings":[{"name":"a"},{"name":"b"},{"name":"a"}]}}`, []string{
			`spec.size: Unsupported value: "medium": supported values: "small", "large"`,
			`spec.toppings[2]: Duplicate value: {"name":"a"}`,
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
		{"no name", `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{},"spec":{"toppings":[]}}`, []string{
			`metadata.name: Required value: name or generateName is required`,
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
		{"an embedded resource and replicas", `{` + head + `,"spec":{"slices":-1,"temperature":1.5,"toppings":[],"template":{"metadata":{"name":"%"}}}}`, []string{
			`spec.temperature: Invalid value: "number": spec.temperature in body must be of type integer,string: "number"`,
			`.spec.slices: Invalid value: -1: should be a non-negative integer`,
			`spec.template.apiVersion: Required value`,
			`spec.template.kind: Required value`,
			`spec.template.metadata.name: Invalid value: "%": may not contain '%'`,
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := object(t, test.object)
			before := (&unstructured.Unstructured{Object: o}).DeepCopy().Object
			if diff := cmp.Diff(test.want, messages(pizza().Version("v1").Validate(t.Context(), o))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("it changed the object (-before +after):\n%s", diff)
			}
		})
	}
}

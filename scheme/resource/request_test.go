package resource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/scheme/resource"
	"github.com/crdkit/crdkit/test/expect"
)

// scaled gives pizzas of v1beta1 slices with a scale, a crust that cannot change and is selectable, and a size that is required.
// v1alpha1, whose Go type has none of these, is deprecated.
func scaled(alpha, beta *apiextensionsv1.CustomResourceDefinitionVersion) {
	spec := beta.Schema.OpenAPIV3Schema.Properties["spec"]
	zero := 0.0
	spec.Properties["slices"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32", Minimum: &zero}
	spec.Properties["crust"] = apiextensionsv1.JSONSchemaProps{
		Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"thin"`)}, Enum: []apiextensionsv1.JSON{{Raw: []byte(`"thin"`)}, {Raw: []byte(`"thick"`)}},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: "a crust is forever"}},
	}
	spec.Properties["size"] = apiextensionsv1.JSONSchemaProps{Type: "number"}
	spec.Required = []string{"size"}
	beta.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	status := beta.Schema.OpenAPIV3Schema.Properties["status"]
	status.Properties["slices"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	beta.Schema.OpenAPIV3Schema.Properties["status"] = status
	beta.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.crust"}}
	beta.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.slices", StatusReplicasPath: ".status.slices"}
	alpha.Deprecated = true
}

// exchange is a request of send, and the answer.
type exchange struct{ request, body, want string }

func exchangeAll(t *testing.T, c *client, all []exchange) {
	t.Helper()
	for _, e := range all {
		if got := c.send(e.request, e.body); got != e.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", e.request, e.body, got, e.want)
		}
	}
}

func TestServer_RulesOfTheDefinition(t *testing.T) {
	t.Parallel()
	s := types(t)
	var updates atomic.Int32
	count := func(_ context.Context, _, old *v1beta1.Pizza) field.ErrorList {
		if old != nil {
			updates.Add(1)
		}
		return nil
	}
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t, scaled), resource.Validate(count), resource.Validate(accept[*v1alpha1.Pizza]))))
	exchangeAll(t, c, []exchange{
		// Defaults, and what is absent, which is not zero.
		{"create v1beta1", `{"metadata":{"name":"a"},"spec":{"size":0}}`, `201 {"crust":"thin","size":0}`},
		{"create v1beta1", `{"metadata":{"name":"b"},"spec":{}}`, `422 Invalid, spec.size: FieldValueRequired, <nil>: FieldValueInvalid`},
		{"create v1beta1", `{"metadata":{"name":"b"}}`, `201 null`},
		{"create v1beta1", `{"metadata":{"name":"c"},"spec":{"size":1,"crust":"none"}}`, `422 Invalid, spec.crust: FieldValueNotSupported, <nil>: FieldValueInvalid`},
		{"create v1beta1", `{"metadata":{"name":"c"},"spec":{"size":1,"toppings":[{"name":"ham"},{"name":"ham"}]}}`, `422 Invalid, spec.toppings[1]: FieldValueDuplicate`},
		{"create v1beta1", `{"metadata":{"name":"c"},"spec":{"size":1,"toppings":[{"name":"ham","quantity":60},{"name":"egg","quantity":60}]}}`, `422 Invalid, spec.toppings: FieldValueInvalid`},
		// Unknown fields.
		{"create v1beta1 ?fieldValidation=Strict", `{"metadata":{"name":"c"},"spec":{"size":1,"sauce":"red"}}`, `400 BadRequest`},
		{"create v1beta1 ?fieldValidation=Ignore", `{"metadata":{"name":"c"},"spec":{"size":1,"sauce":"red"}}`, `201 {"crust":"thin","size":1}`},
		// A transition rule.
		{"patch v1beta1 a", `{"spec":{"crust":"thick"}}`, `422 Invalid, spec.crust: FieldValueInvalid`},
		{"patch v1beta1 a", `{"spec":{"size":2}}`, `200 {"crust":"thin","size":2}`},
		{"strategic v1beta1 a", `{"spec":{"size":2}}`, `415 UnsupportedMediaType`},
		{"update v1beta1 a", `{"metadata":{"name":"a"},"spec":{"size":2}}`, `422 Invalid, metadata.resourceVersion: FieldValueInvalid`},
		// The status and the scale.
		{"patch v1beta1 a/status", `{"spec":{"size":9},"status":{"cost":1,"slices":3}}`, `200 {"crust":"thin","size":2}`},
		{"patch v1beta1 a/status", `{"status":{"cost":-1}}`, `422 Invalid, status.cost: FieldValueInvalid`},
		{"get v1beta1 a/scale", ``, `500 InternalError, : `}, // as of a custom resource without slices
		{"patch v1beta1 a/scale", `{"spec":{"replicas":4}}`, `200 {"replicas":4}`},
		{"get v1beta1 a", ``, `200 {"crust":"thin","size":2,"slices":4}`},
		{"patch v1beta1 a/scale", `{"spec":{"replicas":-4}}`, `422 Invalid, spec.slices: FieldValueInvalid, .spec.slices: FieldValueInvalid`},
		{"get v1beta1 a/scale", ``, `200 {"replicas":4}`},
		// The Go type of another version has none of these fields.
		{"get v1alpha1 a", ``, `200 null`},
	})
	before := updates.Load()
	apply := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":5}}`
	if got := c.do(http.MethodPatch, "v1beta1/namespaces/default/pizzas/a/scale?fieldManager=hpa", "application/apply-patch+yaml", apply); !strings.HasPrefix(got, "409 Conflict") {
		t.Errorf("replicas of another manager are applied: %s", got)
	}
	if got := c.do(http.MethodPatch, "v1beta1/namespaces/default/pizzas/a/scale?fieldManager=hpa&force=true", "application/apply-patch+yaml", apply); got != `200 {"replicas":5}` {
		t.Errorf("replicas are applied: got %s", got)
	}
	if n := updates.Load() - before; n != 1 {
		t.Errorf("an update of the scale: %d calls of Validate", n)
	}
	c.send("create v1beta1 ?dryRun=All", `{"metadata":{"name":"d"},"spec":{"size":1,"sauce":"red"}}`)
	if diff := cmp.Diff([]string{`299 - "unknown field \"spec.sauce\""`}, c.warnings); diff != "" {
		t.Errorf("an unknown field: warnings (-want +got):\n%s", diff)
	}
	c.send("get v1alpha1 a", ``)
	want := `299 - "restaurant.programming-kubernetes.info/v1alpha1 Pizza is deprecated; use restaurant.programming-kubernetes.info/v1beta1 Pizza"`
	if diff := cmp.Diff([]string{want}, c.warnings); diff != "" {
		t.Errorf("a deprecated version: warnings (-want +got):\n%s", diff)
	}
	c.send("patch v1beta1 a", `{"metadata":{"labels":{"a":"b"}}}`)
	metadata, status := c.answer["metadata"].(map[string]any), fmt.Sprint(c.answer["status"])
	if generation := metadata["generation"]; generation != 4.0 || status != "map[cost:1 slices:3]" { // after size and replicas, twice
		t.Errorf("got generation %v, status %s", generation, status)
	}
	for path, want := range map[string]int{"?fieldSelector=spec.crust%3Dthin": 2, "?fieldSelector=spec.crust%3Dthick": 0} {
		if c.send("get v1beta1 "+path, ""); len(c.answer["items"].([]any)) != want {
			t.Errorf("%s: got %v, want %d objects", path, c.answer["items"], want)
		}
	}
	if got := c.send("get v1alpha1 ?fieldSelector=spec.crust%3Dthin", ""); got != "400 BadRequest" {
		t.Errorf("a field of another version is selectable: %s", got)
	}
}

// A rule that is new does not keep an object that was stored before from being changed elsewhere.
func TestServer_Ratchets(t *testing.T) {
	t.Parallel()
	storage := memory(t)
	s := types(t)
	lax := definition(t, func(_, beta *apiextensionsv1.CustomResourceDefinitionVersion) {
		spec := beta.Schema.OpenAPIV3Schema.Properties["spec"]
		toppings := spec.Properties["toppings"]
		toppings.Items.Schema.Properties["quantity"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("1")}}
		toppings.XValidations = nil
		spec.Properties["toppings"] = toppings
		beta.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	})
	exchangeAll(t, newClient(t, serveWith(t, storage, s, pizzas(t, s, lax))), []exchange{
		{"create v1beta1", `{"metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":200}]}}`, `201 {"toppings":[{"name":"ham","quantity":200}]}`},
	})
	s = types(t)
	exchangeAll(t, newClient(t, serveWith(t, storage, s, pizzas(t, s, definition(t)))), []exchange{
		{"patch v1beta1 a", `{"metadata":{"labels":{"a":"b"}}}`, `200 {"toppings":[{"name":"ham","quantity":200}]}`},
		{"patch v1beta1 a", `{"spec":{"toppings":[{"name":"ham","quantity":201}]}}`, `422 Invalid, spec.toppings[0].quantity: FieldValueInvalid, spec.toppings: FieldValueInvalid`},
	})
}

func TestServer_ConvertsByGoTypes(t *testing.T) {
	t.Parallel()
	s := types(t)
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t))))
	exchangeAll(t, c, []exchange{
		{"create v1alpha1", `{"metadata":{"name":"a"},"spec":{"toppings":["ham","egg","ham"]}}`, `201 {"toppings":["ham","ham","egg"]}`},
		{"get v1beta1 a", ``, `200 {"toppings":[{"name":"ham","quantity":2},{"name":"egg","quantity":1}]}`},
		{"patch v1alpha1 a/status", `{"status":{"cost":3}}`, `200 {"toppings":["ham","ham","egg"]}`},
		{"patch v1alpha1 a", `{"metadata":{"labels":{"a":"b"}}}`, `200 {"toppings":["ham","ham","egg"]}`},
		{"create v1alpha1", `{"metadata":{"name":"b"},"spec":{"toppings":[""]}}`, `422 Invalid, spec.toppings[0]: FieldValueInvalid`},
		{"apply v1alpha1 c?fieldManager=ann", `{"metadata":{"name":"c"},"spec":{"toppings":["ham"]}}`, `201 {"toppings":["ham"]}`},
		// The list is atomic in v1alpha1, and a map in v1beta1.
		{"apply v1beta1 c?fieldManager=bob", `{"metadata":{"name":"c"},"spec":{"toppings":[{"name":"egg"}]}}`, `409 Conflict, .spec.toppings: FieldManagerConflict`},
		{"apply v1beta1 d?fieldManager=ann", `{"metadata":{"name":"d"},"spec":{"toppings":[{"name":"ham"}]}}`, `201 {"toppings":[{"name":"ham","quantity":1}]}`},
		{"apply v1beta1 d?fieldManager=bob", `{"metadata":{"name":"d"},"spec":{"toppings":[{"name":"egg"}]}}`, `200 {"toppings":[{"name":"ham","quantity":1},{"name":"egg","quantity":1}]}`},
	})
	// A whole number is the same after a conversion.
	c.send("get v1beta1 a", "")
	if generation := c.answer["metadata"].(map[string]any)["generation"]; generation != 1.0 {
		t.Errorf("got generation %v, want 1", generation)
	}
	// Lists have the objects of all versions.
	if c.send("get v1alpha1", ""); len(c.answer["items"].([]any)) != 3 {
		t.Errorf("got %v", c.answer["items"])
	}
}

// A list that the watch cache does not have, because it is older than the server, is converted, too.
func TestServer_ConvertsListsOfTheStore(t *testing.T) {
	t.Parallel()
	storage, version := memory(t), ""
	t.Run("first server", func(t *testing.T) {
		s := types(t)
		c := newClient(t, serveWith(t, storage, s, pizzas(t, s, definition(t))))
		exchangeAll(t, c, []exchange{{"create v1beta1", `{"metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham"}]}}`, `201 {"toppings":[{"name":"ham","quantity":1}]}`}})
		version, _, _ = unstructured.NestedString(c.answer, "metadata", "resourceVersion")
		exchangeAll(t, c, []exchange{{"create v1beta1", `{"metadata":{"name":"b"}}`, `201 null`}})
	})
	s := types(t)
	c := newClient(t, serveWith(t, storage, s, pizzas(t, s, definition(t))))
	c.send("get v1alpha1 ?resourceVersionMatch=Exact&resourceVersion="+version, "")
	items, _ := json.Marshal(c.answer["items"])
	if got := string(items); len(c.answer["items"].([]any)) != 1 || !strings.Contains(got, `"spec":{"toppings":["ham"]}`) {
		t.Errorf("got %s", got)
	}
}

// Labels and annotations that a conversion returns are validated, as those that a webhook returns.
func TestServer_InvalidLabelsOfConversion(t *testing.T) {
	t.Parallel()
	s := types(t)
	expect.NoError(t, addConversion(s, func(in *v1alpha1.Pizza, out *v1beta1.Pizza) {
		if in.Name != "" {
			out.Labels = map[string]string{"a": "not a value"}
		}
	}))
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t))))
	if got := c.send("create v1alpha1", `{"metadata":{"name":"a"}}`); !strings.HasPrefix(got, "500 ") {
		t.Errorf("got %s", got)
	}
	if got := c.send("get v1beta1 a", ""); got != "404 NotFound" {
		t.Errorf("got %s", got)
	}
}

// Requests for which there is no route are answered as those for custom resources.
func TestServer_OtherRequests(t *testing.T) {
	t.Parallel()
	s := types(t)
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t))))
	if got := c.send("create v1alpha1", `{"metadata":{"name":"a"}}`); !strings.HasPrefix(got, "201 ") {
		t.Fatal(got)
	}
	for request, want := range map[[3]string]string{
		{http.MethodGet, "a/oven", ""}:          "404 NotFound",
		{http.MethodGet, "b/scale", ""}:         "404 NotFound",
		{http.MethodPatch, "a", "text/plain"}:   "415 UnsupportedMediaType",
		{http.MethodPatch, "a", "a; charset=b"}: "415 UnsupportedMediaType",
		{http.MethodPost, "a", "text/plain"}:    "405 MethodNotAllowed",
	} {
		if got := c.do(request[0], "v1alpha1/namespaces/default/pizzas/"+request[1], request[2], ""); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	for name, want := range map[string]int{"a": 200, "a/status": 200, "b": 404} {
		resp, err := c.http.Head(c.host + "v1alpha1/namespaces/default/pizzas/" + name)
		expect.NoError(t, err)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("HEAD %s: got %d, want %d", name, resp.StatusCode, want)
		}
	}
}

func TestServer_NamesOfTheDefinition(t *testing.T) {
	t.Parallel()
	s := types(t)
	toppingDefinition, err := schema.Parse(pizza.Definitions()[1])
	expect.NoError(t, err)
	toppings, err := resource.New[*v1alpha1.Topping](s, toppingDefinition)
	expect.NoError(t, err)
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t, scaled)), toppings))
	for version, want := range map[string][]string{
		"v1alpha1": {"pizzas Pizza true [pz] [restaurant]", "pizzas/status Pizza true [] []", "toppings Topping false [] [restaurant]"},
		"v1beta1":  {"pizzas Pizza true [pz] [restaurant]", "pizzas/scale Scale true [] []", "pizzas/status Pizza true [] []"},
	} {
		c.do(http.MethodGet, version, "", "")
		var got []string
		for _, r := range c.answer["resources"].([]any) {
			r := r.(map[string]any)
			list := func(name string) []any { l, _ := r[name].([]any); return l }
			got = append(got, fmt.Sprint(r["name"], " ", r["kind"], " ", r["namespaced"], " ", list("shortNames"), " ", list("categories")))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
	expect.NoError(t, err)
	if got := c.do(http.MethodPost, "v1alpha1/toppings", "application/json", `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Topping","metadata":{"name":"ham"},"spec":{"cost":1.5}}`); got != `201 {"cost":1.5}` {
		t.Errorf("a topping: got %s", got)
	}
	c.host = strings.TrimSuffix(c.host, "/")
	c.do(http.MethodGet, "", "", "")
	if preferred := c.answer["preferredVersion"].(map[string]any)["version"]; preferred != "v1beta1" {
		t.Errorf("got preferred version %v", preferred)
	}
	base, _, _ := strings.Cut(c.host, "/apis/")
	c.host = base + "/openapi/v3/apis/restaurant.programming-kubernetes.info/"
	c.do(http.MethodGet, "v1beta1", "", "")
	schemas := c.answer["components"].(map[string]any)["schemas"].(map[string]any)
	if schemas["info.programming-kubernetes.restaurant.v1beta1.Pizza"] == nil {
		t.Error("OpenAPI lacks Pizza")
	}
	c.host = base + "/openapi/"
	c.do(http.MethodGet, "v2", "", "")
	if definitions := c.answer["definitions"].(map[string]any); definitions["info.programming-kubernetes.restaurant.v1alpha1.Topping"] == nil {
		t.Error("OpenAPI v2 lacks Topping")
	}
}

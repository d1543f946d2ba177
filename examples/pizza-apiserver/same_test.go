package apiserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// TestServer_AnswersAsCustomResource sends the same requests to the restaurant of package
// pizza, whose kinds are CustomResourceDefinitions with an operator's webhooks, and to this
// one. Both are behind a kube-apiserver. The answers are the same, except for differences: codes, warnings, errors and
// objects, less what ask and normalize take away.
func TestServer_AnswersAsCustomResource(t *testing.T) {
	t.Parallel()
	aggregated := controlplane.ForTest(t, controlplane.Aggregation())
	expect.NoError(t, open(t, aggregated).StartServer(t.Context()))
	defined := controlplane.ForTest(t)
	defined.SkipIfOlder(t, "this server is made of libraries as young, and older ones do some things otherwise")
	operate(t, defined)

	crd, here := newSide(t, defined.Config()), newSide(t, aggregated.Config())
	for _, e := range exchanges {
		t.Run(e.name, func(t *testing.T) {
			want, got := crd.ask(t, e), here.ask(t, e)
			if e.wait {
				if want.Code != http.StatusOK || want.Written {
					t.Errorf("the custom resource answers %d, and is written: %v", want.Code, want.Written)
				}
			}
			if diff, known := cmp.Diff(want, got), differences[e.name] != ""; known && (diff == "" || want.Code < 400 || got.Code < 400) {
				t.Errorf("not the difference that is known: custom resource: %s, this server: %s", want, got)
			} else if !known && diff != "" {
				t.Errorf("%s %s: %s\ncustom resource: %s\nthis server: %s\n(-custom resource +this server):\n%s", e.method, e.path, e.body, want, got, diff)
			}
		})
	}
}

// differences are the requests that only one of both servers finds no route for, and why. Both refuse them.
// Those that make differential finds are in test/sequence.
var differences = map[string]string{
	"a method that there is not": "routes have methods, as those of built-in resources: 405; a custom resource has no name to update: 400",
}

// exchange is one request. They build upon each other.
type exchange struct {
	name, method string
	path         string // below the group
	body         string // "$RV" is the resourceVersion of the pizza margherita
	contentType  string // application/json if it is not said
	accept       string // application/json if it is not said
	wait         bool   // writes nothing, and is sent a second after the request before, because managedFields have times
}

const (
	create = http.MethodPost
	get    = http.MethodGet
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete

	mergePatch = "application/merge-patch+json"
	apply      = "application/apply-patch+yaml"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"

	alphas = "v1alpha1/namespaces/default/pizzas"
	betas  = "v1beta1/namespaces/default/pizzas"
)

// alpha and beta are a pizza, whose spec, and what else there is, is given.
func alpha(name, rest string) string { return object("v1alpha1", "Pizza", name, rest) }
func beta(name, rest string) string  { return object("v1beta1", "Pizza", name, rest) }

func topping(name, rest string) string { return object("v1alpha1", "Topping", name, rest) }

func object(version, kind, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"%s"}%s}`, v1beta1.GroupVersion.Group, version, kind, name, rest)
}

var exchanges = []exchange{
	// Toppings.
	{name: "tomato", method: create, path: "v1alpha1/toppings", body: topping("tomato", `,"spec":{"cost":0.5}`)},
	{name: "mozzarella", method: create, path: "v1alpha1/toppings", body: topping("mozzarella", `,"spec":{"cost":1}`)},
	{name: "salami", method: create, path: "v1alpha1/toppings", body: topping("salami", `,"spec":{"cost":2}`)},
	{name: "a topping is read", method: get, path: "v1alpha1/toppings/salami"},
	{name: "a topping has no v1beta1", method: get, path: "v1beta1/toppings/salami"},
	{name: "a topping of negative cost", method: create, path: "v1alpha1/toppings", body: topping("odd", `,"spec":{"cost":-1}`)},
	{name: "a topping that nobody can pay", method: create, path: "v1alpha1/toppings", body: topping("odd", `,"spec":{"cost":1001}`)},
	{name: "a topping without a cost", method: create, path: "v1alpha1/toppings?dryRun=All", body: topping("odd", `,"spec":{}`)},
	{name: "a topping without a spec", method: create, path: "v1alpha1/toppings?dryRun=All", body: topping("odd", ``)},
	{name: "a dearer topping", method: patch, path: "v1alpha1/toppings/salami", contentType: mergePatch, body: `{"spec":{"cost":2.5}}`},
	{name: "a topping is labelled", method: patch, path: "v1alpha1/toppings/salami", contentType: mergePatch, body: `{"metadata":{"labels":{"meat":"yes"}}}`},

	// Pizzas, and their versions.
	{name: "a margherita", method: create, path: alphas, body: alpha("margherita", `,"spec":{"toppings":["mozzarella","tomato"]}`)},
	{name: "it is read in v1alpha1", method: get, path: alphas + "/margherita"},
	{name: "it is read in v1beta1", method: get, path: betas + "/margherita"},
	{name: "it is there already", method: create, path: betas, body: beta("margherita", ``)},
	{name: "a double portion", method: create, path: alphas, body: alpha("double", `,"spec":{"toppings":["mozzarella","tomato","mozzarella"]}`)},
	{name: "it is quantity 2", method: get, path: betas + "/double"},
	{name: "no quantity is 1", method: create, path: betas, body: beta("plain", `,"spec":{"toppings":[{"name":"tomato"},{"name":"salami","quantity":null}]}`)},
	{name: "it is three names", method: get, path: alphas + "/plain"},
	{name: "only tried", method: create, path: betas + "?dryRun=All", body: beta("tried", `,"spec":{"toppings":[{"name":"tomato"}]}`)},
	{name: "it is not there", method: get, path: betas + "/tried"},
	{name: "a version at the other's path", method: create, path: betas, body: alpha("lost", ``)},
	{name: "no such namespace", method: create, path: "v1beta1/namespaces/nowhere/pizzas", body: beta("lost", ``)},
	{name: "a name in capitals", method: create, path: betas, body: beta("LOST", ``)},
	{name: "no pizza at all", method: create, path: betas, body: `"pizza"`},

	// Defaults.
	{name: "no spec in v1alpha1", method: create, path: alphas, body: alpha("default-a0", ``)},
	{name: "a null spec in v1alpha1", method: create, path: alphas, body: alpha("default-a1", `,"spec":null`)},
	{name: "null toppings in v1alpha1", method: create, path: alphas, body: alpha("default-a2", `,"spec":{"toppings":null}`)},
	{name: "no spec in v1beta1", method: create, path: betas, body: beta("default-b0", ``)},
	{name: "no toppings in v1beta1", method: create, path: betas, body: beta("default-b1", `,"spec":{"toppings":[]}`)},
	{name: "toppings are taken away", method: patch, path: betas + "/default-b1", contentType: mergePatch, body: `{"spec":null}`},
	{name: "they are taken away again", method: patch, path: betas + "/default-b1", contentType: mergePatch, body: `{"spec":{"toppings":[]}}`},
	{name: "and again", wait: true, method: patch, path: betas + "/default-b1", contentType: mergePatch, body: `{"spec":{"toppings":[]}}`},
	{name: "toppings are taken away in v1alpha1", method: patch, path: alphas + "/default-a1", contentType: mergePatch, body: `{"spec":{"toppings":[]}}`},
	{name: "and again in v1alpha1", wait: true, method: patch, path: alphas + "/default-a1", contentType: mergePatch, body: `{"spec":{"toppings":[]}}`},

	// Unknown toppings.
	{name: "unknown toppings in v1alpha1", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":["nails","tomato","screws"]}`)},
	{name: "unknown toppings in v1beta1", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato"},{"name":"nails"}]}`)},
	{name: "an unknown topping comes in an update", method: patch, path: alphas + "/double", contentType: mergePatch, body: `{"spec":{"toppings":["nails"]}}`},
	{name: "an unknown topping that is asked for twice", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":["nails","tomato","nails"]}`)},

	// Values that are not valid.
	{name: "no portion", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato","quantity":0}]}`)},
	{name: "a billion portions", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato","quantity":1000000000}]}`)},
	{name: "a negative number of portions", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato","quantity":-1}]}`)},
	{name: "too much in all", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato","quantity":60},{"name":"salami","quantity":60}]}`)},
	{name: "too many names", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":["tomato"`+strings.Repeat(`,"tomato"`, 100)+`]}`)},
	{name: "a topping twice in v1beta1", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato"},{"name":"tomato"}]}`)},
	{name: "a name that no topping has, in v1alpha1", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":["tomato","Nails!"]}`)},
	{name: "a name that no topping has, in v1beta1", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"Nails!"}]}`)},
	{name: "an empty name", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":[""]}`)},
	{name: "an empty name in v1beta1", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":""}]}`)},
	{name: "no name", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"quantity":1}]}`)},
	{name: "a long name", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":["`+strings.Repeat("a", 254)+`"]}`)},
	{name: "a number that is text", method: create, path: betas, body: beta("odd", `,"spec":{"toppings":[{"name":"tomato","quantity":"two"}]}`)},
	{name: "a list that is text", method: create, path: alphas, body: alpha("odd", `,"spec":{"toppings":"tomato"}`)},

	// Unknown fields.
	{name: "an unknown field, strictly", method: create, path: betas + "?fieldValidation=Strict", body: beta("odd", `,"spec":{"garbage":42}`)},
	{name: "an unknown field, with a warning", method: create, path: betas + "?fieldValidation=Warn", body: beta("warned", `,"spec":{"toppings":[{"name":"tomato"}],"garbage":42}`)},
	{name: "an unknown field, ignored", method: create, path: betas + "?fieldValidation=Ignore", body: beta("ignored", `,"spec":{"toppings":[{"name":"tomato"}],"garbage":42}`)},

	{name: "an unknown field in a merge patch, strictly", method: patch, path: betas + "/plain?fieldValidation=Strict", contentType: mergePatch, body: `{"spec":{"garbage":42}}`},
	{name: "an unknown field in a merge patch", method: patch, path: betas + "/plain", contentType: mergePatch, body: `{"spec":{"garbage":42}}`},
	{name: "an unknown field in a JSON patch", method: patch, path: betas + "/plain?fieldValidation=Strict", contentType: "application/json-patch+json", body: `[{"op":"add","path":"/spec/garbage","value":42}]`},
	{name: "an unknown field is applied", method: patch, path: betas + "/odd?fieldManager=eve&fieldValidation=Strict", contentType: apply, body: beta("odd", `,"spec":{"garbage":42}`)},
	{name: "a field twice", method: create, path: betas + "?fieldValidation=Strict", body: beta("odd", `,"spec":{},"spec":{}`)},
	{name: "an unknown field of metadata", method: create, path: betas + "?fieldValidation=Strict", body: strings.Replace(beta("odd", ``), `"name":"odd"`, `"name":"odd","garbage":42`, 1)},
	{name: "in YAML", method: create, path: betas + "?dryRun=All", contentType: "application/yaml", body: "apiVersion: restaurant.programming-kubernetes.info/v1beta1\nkind: Pizza\nmetadata: {name: yaml}\nspec: {toppings: [{name: tomato}], garbage: 42}\n"},

	// Objects that are not those of the path.
	{name: "another kind", method: create, path: betas, body: object("v1beta1", "Topping", "odd", ``)},
	{name: "another group", method: create, path: betas, body: `{"apiVersion":"example.com/v1beta1","kind":"Pizza","metadata":{"name":"odd"}}`},
	{name: "no kind", method: create, path: betas, body: `{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","metadata":{"name":"odd"}}`},
	{name: "another namespace", method: create, path: betas, body: strings.Replace(beta("odd", ``), `"name":"odd"`, `"name":"odd","namespace":"other"`, 1)},
	{name: "a method that there is not", method: put, path: betas, body: beta("odd", ``)},
	{name: "a subresource that there is not", method: get, path: betas + "/plain/oven"},

	// Metadata.
	{name: "a label that is a number", method: create, path: betas, body: strings.Replace(beta("odd", ``), `"name":"odd"`, `"name":"odd","labels":{"a":1}`, 1)},
	{name: "a label that is not valid", method: create, path: betas, body: strings.Replace(beta("odd", ``), `"name":"odd"`, `"name":"odd","labels":{"a":"?"}`, 1)},
	{name: "a finalizer without a domain", method: create, path: betas + "?dryRun=All", body: strings.Replace(beta("final", ``), `"name":"final"`, `"name":"final","finalizers":["a.b"]`, 1)},

	// Updates.
	{name: "an update", method: put, path: alphas + "/margherita", body: alpha("margherita", `,"spec":{"toppings":["tomato","mozzarella","tomato"]}`)},
	{name: "an update of what has been read", method: put, path: betas + "/margherita", body: strings.Replace(beta("margherita", `,"spec":{"toppings":[{"name":"tomato","quantity":3}]}`), `"name":"margherita"`, `"name":"margherita","resourceVersion":"$RV"`, 1)},
	{name: "an update of what has changed since", method: put, path: betas + "/margherita", body: strings.Replace(beta("margherita", ``), `"name":"margherita"`, `"name":"margherita","resourceVersion":"1"`, 1)},
	{name: "an update of another", method: put, path: betas + "/margherita", body: beta("double", ``)},
	{name: "an update of what is not there", method: put, path: betas + "/nothing", body: strings.Replace(beta("nothing", ``), `"name":"nothing"`, `"name":"nothing","resourceVersion":"1"`, 1)},
	{name: "a merge patch", method: patch, path: alphas + "/margherita", contentType: mergePatch, body: `{"metadata":{"labels":{"menu":"lunch"}},"spec":{"toppings":["tomato","mozzarella"]}}`},
	{name: "a JSON patch", method: patch, path: betas + "/margherita", contentType: "application/json-patch+json", body: `[{"op":"replace","path":"/spec/toppings/0/quantity","value":2}]`},
	{name: "a JSON patch that does not apply", method: patch, path: betas + "/margherita", contentType: "application/json-patch+json", body: `[{"op":"replace","path":"/spec/toppings/7/quantity","value":2}]`},
	{name: "a patch that makes it invalid", method: patch, path: betas + "/margherita", contentType: mergePatch, body: `{"spec":{"toppings":[{"name":"tomato","quantity":0}]}}`},
	{name: "a strategic merge patch", method: patch, path: alphas + "/margherita?dryRun=All", contentType: "application/strategic-merge-patch+json", body: `{"metadata":{"labels":{"menu":"dinner"}}}`},
	{name: "a name is forever", method: patch, path: betas + "/margherita", contentType: mergePatch, body: `{"metadata":{"name":"other"}}`},

	// Server-side apply.
	{name: "ada applies", method: patch, path: betas + "/shared?fieldManager=ada", contentType: apply, body: beta("shared", `,"spec":{"toppings":[{"name":"tomato","quantity":1}]}`)},
	{name: "bob applies", method: patch, path: betas + "/shared?fieldManager=bob", contentType: apply, body: beta("shared", `,"spec":{"toppings":[{"name":"salami","quantity":2}]}`)},
	{name: "ada and bob are in conflict", method: patch, path: betas + "/shared?fieldManager=ada", contentType: apply, body: beta("shared", `,"spec":{"toppings":[{"name":"tomato","quantity":1},{"name":"salami","quantity":3}]}`)},
	{name: "ada applies by force", method: patch, path: betas + "/shared?fieldManager=ada&force=true", contentType: apply, body: beta("shared", `,"spec":{"toppings":[{"name":"tomato","quantity":1},{"name":"salami","quantity":3}]}`)},
	{name: "ada applies the same again", wait: true, method: patch, path: betas + "/shared?fieldManager=ada", contentType: apply, body: beta("shared", `,"spec":{"toppings":[{"name":"tomato","quantity":1},{"name":"salami","quantity":3}]}`)},
	{name: "bob applies nothing", method: patch, path: betas + "/shared?fieldManager=bob", contentType: apply, body: beta("shared", ``)},
	{name: "carol applies v1alpha1", method: patch, path: alphas + "/carols?fieldManager=carol", contentType: apply, body: alpha("carols", `,"spec":{"toppings":["tomato","tomato"]}`)},
	{name: "carol applies a pizza without toppings", method: patch, path: betas + "/empty?fieldManager=carol", contentType: apply, body: beta("empty", ``)},

	// Status.
	{name: "a status has no place in a pizza", method: create, path: betas, body: beta("bill", `,"spec":{"toppings":[{"name":"tomato"}]},"status":{"cost":7}`)},
	{name: "its status is written", method: patch, path: betas + "/bill/status", contentType: mergePatch, body: `{"status":{"cost":0.5},"spec":{"toppings":[]},"metadata":{"labels":{"a":"b"}}}`},
	{name: "and read in v1alpha1", method: get, path: alphas + "/bill/status"},
	{name: "not by an update of the pizza", method: patch, path: alphas + "/bill", contentType: mergePatch, body: `{"status":{"cost":9},"spec":{"toppings":["tomato","tomato"]}}`},
	{name: "a negative cost", method: patch, path: betas + "/bill/status", contentType: mergePatch, body: `{"status":{"cost":-1}}`},
	{name: "a cost is applied", method: patch, path: betas + "/bill/status?fieldManager=till&force=true", contentType: apply, body: beta("bill", `,"status":{"cost":1}`)},

	// Lists.
	{name: "all in v1alpha1", method: get, path: "v1alpha1/pizzas"},
	{name: "all in v1beta1", method: get, path: betas},
	{name: "all toppings", method: get, path: "v1alpha1/toppings"},
	{name: "by label", method: get, path: betas + "?labelSelector=menu"},
	{name: "by name", method: get, path: alphas + "?fieldSelector=metadata.name%3Ddouble"},
	{name: "by a field that cannot be selected", method: get, path: alphas + "?fieldSelector=spec.toppings%3Dtomato"},
	{name: "a table in v1alpha1", method: get, path: alphas + "?labelSelector=menu", accept: asTable},
	{name: "a table in v1beta1", method: get, path: betas + "?labelSelector=menu", accept: asTable},
	{name: "a table of toppings", method: get, path: "v1alpha1/toppings", accept: asTable},
	{name: "metadata alone", method: get, path: betas + "/double", accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
	{name: "in protobuf", method: get, path: betas + "/double", accept: "application/vnd.kubernetes.protobuf"},
	{name: "in protobuf or else in JSON", method: get, path: betas + "/double", accept: "application/vnd.kubernetes.protobuf,application/json"},
	{name: "what there is in v1alpha1", method: get, path: "v1alpha1"},
	{name: "what there is in v1beta1", method: get, path: "v1beta1"},

	// Deletion.
	{name: "a topping that is used is deleted", method: remove, path: "v1alpha1/toppings/mozzarella"},
	{name: "a pizza that is another by now", method: remove, path: betas + "/double", body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`},
	{name: "a pizza is eaten", method: remove, path: alphas + "/double"},
	{name: "it has gone", method: get, path: betas + "/double"},
	{name: "it is eaten again", method: remove, path: betas + "/double"},
	{name: "all are eaten", method: remove, path: betas},
	{name: "none is left", method: get, path: "v1beta1/pizzas"},
}

// side is one of the two restaurants.
type side struct {
	client   *http.Client
	base     string
	versions map[any]any // the resourceVersion of each object, by UID
}

func newSide(t *testing.T, config *rest.Config) *side {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	return &side{client, config.Host + "/apis/" + v1beta1.GroupVersion.Group + "/", map[any]any{}}
}

// answer is what is compared, without what is another each time.
type answer struct {
	Code     int
	Warnings []string
	Reason   metav1.StatusReason
	Message  string
	Details  *metav1.StatusDetails
	Object   map[string]any
	// Written reports whether the object has another resourceVersion than before.
	Written bool
	// MediaType of what is not JSON: the text of an error, which is not compared.
	MediaType string
}

// String says the most important of it, in a line.
func (a answer) String() string {
	switch {
	case a.Code >= 400:
		text := fmt.Sprint(a.Code, " ", a.Reason)
		if a.Details != nil {
			for _, cause := range a.Details.Causes {
				text += fmt.Sprintf(", %s: %s", cause.Field, cause.Type)
			}
		}
		return text
	case a.Object["kind"] == "Table":
		text := fmt.Sprint(a.Code, " ")
		for _, row := range a.Object["rows"].([]any) {
			text += compact(row.(map[string]any)["cells"])
		}
		return text
	}
	text := fmt.Sprint(a.Code, " ", compact(a.Object["spec"]))
	o := unstructured.Unstructured{Object: a.Object}
	for _, m := range o.GetManagedFields() {
		text += fmt.Sprintf(", %s has %s", m.Manager, m.FieldsV1.GetRawString())
	}
	return text
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// unlike is what differs in messages: how that of a webhook begins, and times, identities and versions.
var unlike = regexp.MustCompile(`^admission webhook "[^"]*" denied the request: |[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|"resourceVersion[\\]":[\\]"\d+`)

// ask sends a request and reads the answer. Of an error it takes away the name of the webhook, the UID of what the error is about,
// and the order of the causes.
func (s *side) ask(t *testing.T, e exchange) (a answer) {
	t.Helper()
	if e.wait {
		time.Sleep(1100 * time.Millisecond)
	}
	body := e.body
	if strings.Contains(body, "$RV") {
		o := unstructured.Unstructured{Object: s.ask(t, exchange{method: get, path: betas + "/margherita", accept: "live"}).Object}
		body = strings.ReplaceAll(body, "$RV", o.GetResourceVersion())
	}
	path := e.path
	if e.method != get && !strings.Contains(path, "fieldManager=") {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "fieldManager=test"
	}
	request, err := http.NewRequestWithContext(t.Context(), e.method, s.base+path, strings.NewReader(body))
	expect.NoError(t, err)
	request.Header.Set("Content-Type", or(e.contentType, "application/json"))
	request.Header.Set("Accept", or(strings.TrimPrefix(e.accept, "live"), "application/json"))
	resp, err := s.client.Do(request)
	expect.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	expect.NoError(t, err)
	a.Code, a.Warnings = resp.StatusCode, resp.Header.Values("Warning")
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		a.MediaType = resp.Header.Get("Content-Type")
		return a
	}
	if a.Code >= 400 {
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil {
			t.Fatalf("%d is not a status: %s", a.Code, text)
		}
		t.Logf("%s: %d %s", s.base, a.Code, status.Message)
		a.Reason, a.Message, a.Details = status.Reason, unlike.ReplaceAllString(status.Message, ""), status.Details
		if a.Details != nil {
			a.Details.UID = ""
			for i := range a.Details.Causes {
				a.Details.Causes[i].Message = unlike.ReplaceAllString(a.Details.Causes[i].Message, "")
			}
			slices.SortFunc(a.Details.Causes, func(x, y metav1.StatusCause) int {
				return strings.Compare(x.Field+string(x.Type), y.Field+string(y.Type))
			})
		}
		return a
	}
	if err := json.Unmarshal(text, &a.Object); err != nil {
		t.Fatalf("%d is not an object: %s", a.Code, text)
	}
	if m, ok := a.Object["metadata"].(map[string]any); ok && m["uid"] != nil {
		a.Written = s.versions[m["uid"]] != m["resourceVersion"]
		s.versions[m["uid"]] = m["resourceVersion"]
	}
	if e.accept != "live" {
		normalize(a.Object)
	}
	return a
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// normalize takes away what is another each time: times, identities, and how often etcd has been written. The managedFields of
// lists are not compared, but those of each object. Resources and their verbs are in another order.
func normalize(object map[string]any) {
	if m, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp"} {
			delete(m, name)
		}
		fields, _ := m["managedFields"].([]any)
		for _, entry := range fields {
			delete(entry.(map[string]any), "time")
		}
		// They are sorted by their time, which has seconds.
		slices.SortFunc(fields, func(a, b any) int { return strings.Compare(ownerOf(a), ownerOf(b)) })
	}
	if details, ok := object["details"].(map[string]any); ok { // of a deletion
		delete(details, "uid")
	}
	if resources, ok := object["resources"].([]any); ok {
		name := func(r any) string { return r.(map[string]any)["name"].(string) }
		slices.SortFunc(resources, func(a, b any) int { return strings.Compare(name(a), name(b)) })
		for _, r := range resources {
			slices.SortFunc(r.(map[string]any)["verbs"].([]any), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	for _, list := range []string{"items", "rows"} {
		items, _ := object[list].([]any)
		for _, item := range items {
			item := item.(map[string]any)
			if cells, ok := item["cells"].([]any); ok {
				cells[len(cells)-1] = "age"
				item = item["object"].(map[string]any)
			}
			normalize(item)
			unstructured.RemoveNestedField(item, "metadata", "managedFields")
		}
	}
}

// ownerOf says whose entry of managedFields it is.
func ownerOf(entry any) string {
	e := entry.(map[string]any)
	return fmt.Sprint(e["manager"], " ", e["operation"], " ", e["apiVersion"], " ", e["subresource"])
}

// operate runs the operator of package pizza in a control plane, until the test ends: its
// webhooks, and not its controller, which writes costs at a time of its own.
func operate(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	endpoint := pizza.InCluster()
	endpoint.URL = "https://" + listener.Addr().String()
	manifests, err := pizza.Manifests("", endpoint, nil)
	expect.NoError(t, err)
	// The other one leads, and has an hour.
	parts := []string{fmt.Sprintf(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %s, namespace: %s}
spec: {holderIdentity: another, leaseDurationSeconds: 3600, acquireTime: %[3]q, renewTime: %[3]q}
`, pizza.Name, pizza.Namespace, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))}
	for _, document := range strings.Split(string(manifests), "---\n") {
		if strings.Contains(document, "\nkind: CustomResourceDefinition\n") || strings.Contains(document, "WebhookConfiguration\n") || strings.Contains(document, "kind: Namespace\n") {
			parts = append([]string{document}, parts...)
		}
	}
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	kubectl := exec.CommandContext(t.Context(), cp.Kubectl(), "--kubeconfig="+kubeconfig, "create", "-f", "-")
	slices.SortStableFunc(parts, func(a, b string) int { // the namespace first
		return strings.Compare(fmt.Sprint(!strings.Contains(a, "kind: Namespace\n")), fmt.Sprint(!strings.Contains(b, "kind: Namespace\n")))
	})
	kubectl.Stdin = strings.NewReader(strings.Join(parts, "\n---\n"))
	if output, err := kubectl.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	lease := pizza.Lease{Namespace: pizza.Namespace, Name: pizza.Name, Identity: "test", Duration: time.Hour, RenewDeadline: 50 * time.Minute, RetryPeriod: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- pizza.Run(ctx, cp.Config(), listener, endpoint, pizza.LeaderElection(lease)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	// It is in force when a pizza with nails is denied.
	s := newSide(t, cp.Config())
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 5 * time.Second}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		ready, err := web.Get(endpoint.URL + "/readyz")
		if err == nil {
			_ = ready.Body.Close()
			if ready.StatusCode == http.StatusOK {
				resp, err := s.client.Post(s.base+alphas+"?dryRun=All", "application/json", bytes.NewBufferString(alpha("odd", `,"spec":{"toppings":["nails"]}`)))
				if err == nil {
					_ = resp.Body.Close()
					if resp.StatusCode == http.StatusUnprocessableEntity {
						return
					}
				}
			}
		}
		select {
		case err := <-stopped:
			stopped <- err
			t.Fatalf("the operator has stopped: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("after a minute, the operator's webhooks are not in force")
		}
	}
}

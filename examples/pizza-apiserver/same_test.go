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
	"github.com/crdkit/crdkit/internal/testing/controlplane"
)

// TestServer_AnswersAsCustomResource sends the same requests to the restaurant of package
// pizza, whose kinds are CustomResourceDefinitions with an operator's webhooks, and to this
// one. Both are behind a kube-apiserver. The answers are the same, except for
// differences: codes, warnings, reasons, fields, causes and objects. The words of errors are not
// compared, nor what ask and normalize take away.
func TestServer_AnswersAsCustomResource(t *testing.T) {
	t.Parallel()
	aggregated := controlplane.ForTest(t, controlplane.Aggregation())
	if err := open(t, aggregated).StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	defined := controlplane.ForTest(t)
	defined.SkipIfOlder(t, "this server is made of libraries as young, and older ones do some things otherwise")
	operate(t, defined)

	crd, here := newSide(t, defined.Config()), newSide(t, aggregated.Config())
	stale := map[string]bool{}
	for name := range differences {
		stale[name] = true
	}
	for _, e := range exchanges {
		t.Run(e.name, func(t *testing.T) {
			want, got := crd.ask(t, e), here.ask(t, e)
			if e.wait {
				if want.Code != http.StatusOK || want.Written {
					t.Errorf("the custom resource answers %d, and is written: %v", want.Code, want.Written)
				}
			}
			if differ, known := differences[e.name]; known {
				delete(stale, e.name)
				if diff := cmp.Diff([]string{differ.crd, differ.here}, []string{want.String(), got.String()}); diff != "" {
					t.Errorf("it is not the difference that is known (-want +got, first of the custom resource, then of this server):\n%s", diff)
				}
				if differ.crd == differ.here || differ.why == "" {
					t.Error("not a difference, or one without a reason")
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: %s\ncustom resource: %s\nthis server: %s\n(-custom resource +this server):\n%s", e.method, e.path, e.body, want, got, diff)
			}
		})
	}
	for name := range stale {
		t.Errorf("there is no request %q, of which a difference is known", name)
	}
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

// difference is where the two restaurants do not answer alike: what the custom resource
// says, what this server does, and why.
type difference struct{ crd, here, why string }

const (
	noZero = "a Go type without pointers cannot tell what is absent from what is zero"
	cells  = "the cells are made by code, and not by a JSONPath"
)

// differences are all that there are, by the name of the request. Two are not here: those in
// normalize are everywhere, and ask takes away the words of errors.
var differences = map[string]difference{
	"a topping has no v1beta1": {
		crd: "404 ", here: "404 NotFound",
		why: "the server of custom resources answers for an unknown resource in plain text, as for an unknown path",
	},
	"a topping without a cost": {crd: "422 Invalid, spec.cost: FieldValueRequired", here: `201 {"cost":0}`, why: noZero},
	"a topping without a spec": {crd: "422 Invalid, spec: FieldValueRequired", here: `201 {"cost":0}`, why: noZero},
	"an empty name in v1beta1": {crd: "422 Invalid, spec.toppings[0].name: FieldValueInvalid", here: "422 Invalid, spec.toppings[0].name: FieldValueRequired", why: noZero},
	"no name": {
		crd: "422 Invalid, <nil>: FieldValueInvalid, spec.toppings[0].name: FieldValueRequired", here: "422 Invalid, spec.toppings[0].name: FieldValueRequired",
		why: "the custom resource says that its CEL rules were not run",
	},

	"null toppings in v1alpha1": {
		crd: `201 {"toppings":["tomato","mozzarella","salami"]}, test has {"f:spec":{}}`, here: `201 {"toppings":["tomato","mozzarella","salami"]}`, why: noZero,
	},
	"not by an update of the pizza": {
		crd:  `200 {"toppings":["tomato","tomato"]}, test has {"f:spec":{"f:toppings":{}}}, test has {"f:spec":{"f:toppings":{".":{},"k:{\"name\":\"tomato\"}":{".":{},"f:name":{}}}}}, test has {"f:status":{}}`,
		here: `200 {"toppings":["tomato","tomato"]}, test has {"f:spec":{"f:toppings":{}}}, test has {"f:spec":{"f:toppings":{".":{},"k:{\"name\":\"tomato\"}":{".":{},"f:name":{}}}}}, test has {"f:status":{"f:cost":{}}}`,
		why:  "a custom resource's strategy says for the version of the request alone that an update does not touch the status (customresource/strategy.go, GetResetFields): who has written it in another version loses the ownership",
	},

	"an unknown topping that is asked for twice": {
		crd:  "422 Invalid, spec.toppings[0]: FieldValueNotFound, spec.toppings[2]: FieldValueNotFound",
		here: "422 Invalid, spec.toppings[0]: FieldValueNotFound, spec.toppings[1]: FieldValueNotFound",
		why:  "a webhook sees what the user wrote; here the object has been to the hub, which counts, before anybody checks it",
	},
	"a strategic merge patch": {
		crd:  "415 UnsupportedMediaType",
		here: `200 {"toppings":["tomato","tomato","mozzarella"]}, test has {"f:metadata":{"f:labels":{".":{},"f:menu":{}}},"f:spec":{}}, test has {"f:spec":{"f:toppings":{"k:{\"name\":\"tomato\"}":{"f:quantity":{}}}}}`,
		why:  "it needs a Go type",
	},
	"a table in v1alpha1": {crd: `200 ["margherita","[\"tomato\",\"tomato\",\"mozzarella\"]",null,"age"]`, here: `200 ["margherita","tomato ×2, mozzarella",null,"age"]`, why: cells},
	"a table in v1beta1":  {crd: `200 ["margherita","[{\"name\":\"tomato\",\"quantity\":2},{\"name\":\"mozzarella\",\"quantity\":1}]",null,"age"]`, here: `200 ["margherita","tomato ×2, mozzarella",null,"age"]`, why: cells},
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
	if err != nil {
		t.Fatal(err)
	}
	return &side{client, config.Host + "/apis/" + v1beta1.GroupVersion.Group + "/", map[any]any{}}
}

// answer is what is compared: of an error not its words, and of an object nothing that is
// another each time.
type answer struct {
	Code     int
	Warnings []string
	Reason   metav1.StatusReason
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

// ask sends a request and reads the answer. Of an error it takes away all words: its message,
// those of its causes, and a text that is not JSON. And it takes away the UID of what the error
// is about, and the order of the causes.
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
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", or(e.contentType, "application/json"))
	request.Header.Set("Accept", or(strings.TrimPrefix(e.accept, "live"), "application/json"))
	resp, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
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
		a.Reason, a.Details = status.Reason, status.Details
		if a.Details != nil {
			a.Details.UID = ""
			for i := range a.Details.Causes {
				a.Details.Causes[i].Message = ""
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

// normalize takes away what is another each time: times, identities, and how often etcd has
// been written; ask does that for errors. And it takes away these differences, which are
// everywhere:
//
//   - The items of a custom resource's list have their apiVersion and kind, and the list
//     has an empty "continue", because both are unstructured (client-go encodes Go types
//     without). Their managedFields are compared one by one.
//   - The manager who creates a topping owns its spec, as the field ".", if the topping is a
//     custom resource. The Go type has no omitzero for its spec, so the empty object, with which
//     the API server compares a new one, has the spec already
//     (apimachinery/pkg/util/managedfields/internal/structuredmerge.go).
//   - Resources and their verbs are in another order, and the columns of a table have
//     other descriptions.
func normalize(object map[string]any) {
	if m, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp"} {
			delete(m, name)
		}
		if m["continue"] == "" {
			delete(m, "continue")
		}
		fields, _ := m["managedFields"].([]any)
		for _, entry := range fields {
			delete(entry.(map[string]any), "time")
			owned, _ := entry.(map[string]any)["fieldsV1"].(map[string]any)
			for _, part := range []string{"f:spec", "f:status"} {
				if part, ok := owned[part].(map[string]any); ok {
					delete(part, ".")
				}
			}
		}
		// They are sorted by their time, which has seconds.
		slices.SortFunc(fields, func(a, b any) int { return strings.Compare(ownerOf(a), ownerOf(b)) })
	}
	if details, ok := object["details"].(map[string]any); ok { // of a deletion
		delete(details, "uid")
	}
	if resources, ok := object["resources"].([]any); ok {
		slices.SortFunc(resources, func(a, b any) int {
			return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
	}
	for _, list := range []string{"items", "rows", "resources", "columnDefinitions"} {
		items, _ := object[list].([]any)
		for _, item := range items {
			item := item.(map[string]any)
			switch list {
			case "items":
				normalize(item)
				delete(item, "apiVersion")
				delete(item, "kind")
				unstructured.RemoveNestedField(item, "metadata", "managedFields")
			case "rows":
				if o, ok := item["object"].(map[string]any); ok {
					normalize(o)
					unstructured.RemoveNestedField(o, "metadata", "managedFields")
				}
				cells := item["cells"].([]any)
				cells[len(cells)-1] = "age"
			case "resources":
				slices.SortFunc(item["verbs"].([]any), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			case "columnDefinitions":
				delete(item, "description")
			}
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
	if err != nil {
		t.Fatal(err)
	}
	endpoint := pizza.InCluster()
	endpoint.URL = "https://" + listener.Addr().String()
	manifests, err := pizza.Manifests("", endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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

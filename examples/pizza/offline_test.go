package pizza

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/webhooktest"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
	"github.com/crdkit/crdkit/webhook/registration"
)

// meals is what happens in the restaurant. The steps build upon each other.
var meals = []struct {
	name, verb, version, pizza, text string
	spec, fails                      string // what comes of it: the spec, or else the error
}{
	{name: "a margherita", verb: "create", version: "v1alpha1", text: object("v1alpha1", `,"spec":{"toppings":["mozzarella","tomato"]}`),
		spec: `{"toppings":["mozzarella","tomato"]}`},
	{name: "is the same pizza in v1beta1", verb: "get", version: "v1beta1", pizza: "p",
		spec: `{"toppings":[{"name":"mozzarella","quantity":1},{"name":"tomato","quantity":1}]}`},
	{name: "a double portion is quantity 2", verb: "patch", version: "v1alpha1", pizza: "p", text: `{"spec":{"toppings":["tomato","mozzarella","tomato"]}}`,
		spec: `{"toppings":["tomato","tomato","mozzarella"]}`},
	{name: "in v1beta1 too", verb: "get", version: "v1beta1", pizza: "p",
		spec: `{"toppings":[{"name":"tomato","quantity":2},{"name":"mozzarella","quantity":1}]}`},
	{name: "a pizza without toppings becomes a salami pizza", verb: "patch", version: "v1alpha1", pizza: "p", text: `{"spec":{"toppings":null}}`,
		spec: `{"toppings":["tomato","mozzarella","salami"]}`},
	{name: "a quantity is 1 where none is given", verb: "patch", version: "v1beta1", pizza: "p", text: `{"spec":{"toppings":[{"name":"salami"}]}}`,
		spec: `{"toppings":[{"name":"salami","quantity":1}]}`},
	{name: "unknown toppings are denied, all in one answer", verb: "patch", version: "v1alpha1", pizza: "p", text: `{"spec":{"toppings":["nails","tomato","screws"]}}`,
		fails: `admission webhook "validate.pizzas.restaurant.programming-kubernetes.info" denied the request: Pizza.restaurant.programming-kubernetes.info "p" is invalid: [spec.toppings[0]: Not found: "nails", spec.toppings[2]: Not found: "screws"]`},
	{name: "in v1beta1, with the paths of that", verb: "patch", version: "v1beta1", pizza: "p", text: `{"spec":{"toppings":[{"name":"nails"}]}}`,
		fails: `admission webhook "validate.pizzas.restaurant.programming-kubernetes.info" denied the request: Pizza.restaurant.programming-kubernetes.info "p" is invalid: spec.toppings[0].name: Not found: "nails"`},
	{name: "an absurd quantity is for the schema to refuse", verb: "patch", version: "v1beta1", pizza: "p", text: `{"spec":{"toppings":[{"name":"tomato","quantity":0}]}}`,
		fails: `Pizza.restaurant.programming-kubernetes.info "p" is invalid: spec.toppings[0].quantity: Invalid value: 0: spec.toppings[0].quantity in body should be greater than or equal to 1`},
	{name: "the status says the cost, and nothing else changes", verb: "patch status", version: "v1alpha1", pizza: "p", text: `{"status":{"cost":1.5},"spec":{"toppings":[]}}`,
		spec: `{"toppings":["salami"]}`},
	{name: "the name is taken", verb: "create", version: "v1beta1", text: object("v1beta1", ``),
		fails: `pizzas.restaurant.programming-kubernetes.info "p" already exists`},
	{name: "it is eaten", verb: "delete", version: "v1beta1", pizza: "p"},
	{name: "it has gone", verb: "get", version: "v1alpha1", pizza: "p",
		fails: `pizzas.restaurant.programming-kubernetes.info "p" not found`},
}

// TestTheRestaurantWithoutACluster runs the operator's own webhooks, as it registers them.
func TestTheRestaurantWithoutACluster(t *testing.T) {
	op, err := newOperator(&rest.Config{Host: toppingsServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, op.toppings)
	hooks, err := op.declare(InCluster())
	if err != nil {
		t.Fatal(err)
	}
	pizzas := offlinePizzas(t, hooks)
	for _, m := range meals {
		t.Run(m.name, func(t *testing.T) {
			o, err := askOffline(t.Context(), pizzas, m.verb, m.version, m.pizza, m.text)
			switch {
			case m.fails != "" && (err == nil || err.Error() != m.fails):
				t.Errorf("got %v, want %s", err, m.fails)
			case m.fails == "" && err != nil:
				t.Error(err)
			case m.spec != "":
				spec, err := json.Marshal(o.Object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(m.spec, string(spec)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestTheAPIServerServesTheSamePizzas does the same in a cluster, and compares: the objects,
// and the errors with their causes.
func TestTheAPIServerServesTheSamePizzas(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	op, err := newOperator(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	var hooks *registration.Webhooks
	url, ca := webhooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hooks.ServeHTTP(w, r) }))
	endpoint := InCluster()
	endpoint.URL = url
	if hooks, err = op.declare(endpoint); err != nil {
		t.Fatal(err)
	}
	registerInCluster(t, cp.Config(), manifestsOf(t, hooks, ca))
	client, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	run(t, op.toppings)
	pizzas := offlinePizzas(t, hooks)
	type outcome struct {
		Object map[string]any
		Status metav1.Status
	}
	of := func(o *unstructured.Unstructured, err error) (out outcome) {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			out.Status = status.Status()
			out.Status.TypeMeta, out.Status.ListMeta = metav1.TypeMeta{}, metav1.ListMeta{}
		} else if err != nil {
			t.Fatal(err)
		} else if o != nil && o.GetKind() == "Pizza" {
			out.Object = o.Object
			for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields"} {
				unstructured.RemoveNestedField(o.Object, "metadata", name)
			}
		}
		return out
	}
	for _, m := range meals {
		t.Run(m.name, func(t *testing.T) {
			want := of(askCluster(t.Context(), client, m.verb, m.version, m.pizza, m.text))
			got := of(askOffline(t.Context(), pizzas, m.verb, m.version, m.pizza, m.text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-cluster +offline):\n%s", diff)
			}
		})
	}
}

// declarations are what the operator tells the API server.
type declarations struct {
	definitions []*apiextensionsv1.CustomResourceDefinition // of pizzas, and of toppings
	texts       [][]byte                                    // of the definitions
	mutating    *admissionregistrationv1.MutatingWebhookConfiguration
	validating  *admissionregistrationv1.ValidatingWebhookConfiguration
}

// declared returns what an operator at an endpoint declares.
func declared(t *testing.T, e Endpoint, ca []byte) declarations {
	t.Helper()
	op, err := newOperator(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := op.declare(e)
	if err != nil {
		t.Fatal(err)
	}
	return manifestsOf(t, hooks, ca)
}

// manifestsOf reads the manifests of a declaration.
func manifestsOf(t *testing.T, hooks *registration.Webhooks, ca []byte) (d declarations) {
	t.Helper()
	manifests, err := hooks.Manifests(ca)
	if err != nil {
		t.Fatal(err)
	}
	d.mutating = &admissionregistrationv1.MutatingWebhookConfiguration{}
	d.validating = &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, document := range strings.Split(string(manifests), "---\n")[1:] {
		var kind metav1.TypeMeta
		errs := []error{yaml.Unmarshal([]byte(document), &kind)}
		switch kind.Kind {
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			errs = append(errs, yaml.UnmarshalStrict([]byte(document), crd))
			d.definitions, d.texts = append(d.definitions, crd), append(d.texts, []byte(document))
		case "MutatingWebhookConfiguration":
			errs = append(errs, yaml.UnmarshalStrict([]byte(document), d.mutating))
		case "ValidatingWebhookConfiguration":
			errs = append(errs, yaml.UnmarshalStrict([]byte(document), d.validating))
		default:
			t.Errorf("the manifests have a %s", kind.Kind)
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.definitions) != 2 {
		t.Fatalf("the manifests have %d definitions", len(d.definitions))
	}
	return d
}

func offlinePizzas(t *testing.T, hooks *registration.Webhooks) *offline.Resource {
	t.Helper()
	d := manifestsOf(t, hooks, nil)
	definition, err := schema.New(d.definitions[0])
	if err != nil {
		t.Fatal(err)
	}
	pizzas, err := offline.New(definition, offline.Convert(hooks), offline.Mutate(hooks, d.mutating.Webhooks...), offline.Validate(hooks, d.validating.Webhooks...))
	if err != nil {
		t.Fatal(err)
	}
	return pizzas
}

func askOffline(ctx context.Context, pizzas *offline.Resource, verb, version, name, text string) (*unstructured.Unstructured, error) {
	out, err := func() (*schema.Result, error) {
		switch verb {
		case "create":
			return pizzas.Create(ctx, version, []byte(text))
		case "get":
			return pizzas.Get(ctx, version, "default", name)
		case "patch":
			return pizzas.Patch(ctx, version, "default", name, types.MergePatchType, []byte(text))
		case "patch status":
			return pizzas.PatchStatus(ctx, version, "default", name, types.MergePatchType, []byte(text))
		default:
			return pizzas.Delete(ctx, version, "default", name)
		}
	}()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(out.Object)
}

func askCluster(ctx context.Context, client dynamic.Interface, verb, version, name, text string) (*unstructured.Unstructured, error) {
	pizzas := client.Resource(v1beta1.GroupVersion.WithResource("pizzas").GroupResource().WithVersion(version)).Namespace("default")
	switch verb {
	case "create":
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			return nil, err
		}
		return pizzas.Create(ctx, o, metav1.CreateOptions{})
	case "get":
		return pizzas.Get(ctx, name, metav1.GetOptions{})
	case "patch":
		return pizzas.Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	case "patch status":
		return pizzas.Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, "status")
	default:
		return nil, pizzas.Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// toppingsServer serves the toppings, which are offline too, to the operator's informer. It
// returns its URL.
func toppingsServer(t *testing.T) string {
	t.Helper()
	definition, err := schema.New(declared(t, InCluster(), nil).definitions[1])
	if err != nil {
		t.Fatal(err)
	}
	toppings, err := offline.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tomato", "mozzarella", "salami"} {
		text, err := topping(t, name).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := toppings.Create(t.Context(), "v1alpha1", text); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			if r.URL.Query().Get("sendInitialEvents") != "" {
				w.WriteHeader(http.StatusUnprocessableEntity) // then it lists
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid"}`))
				return
			}
			select { // nothing changes
			case <-r.Context().Done():
			case <-done:
			}
			return
		}
		out, err := toppings.List(r.Context(), "v1alpha1", "")
		if name := path.Base(r.URL.Path); name != "toppings" {
			out, err = toppings.Get(r.Context(), "v1alpha1", "", name)
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			answer := status.Status()
			answer.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			w.WriteHeader(int(answer.Code))
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		_, _ = w.Write(out.Object)
	}))
	t.Cleanup(func() { close(done); server.Close() })
	return server.URL
}

func topping(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Topping", "metadata": map[string]any{"name": name}, "spec": map[string]any{"cost": 1.5},
	}}
}

// run runs an informer until the test ends, and waits until it has synced.
func run(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
}

// registerInCluster installs the definitions and the webhooks, waits until they are in
// force, and puts the toppings on the menu.
func registerInCluster(t *testing.T, config *rest.Config, d declarations) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), d.mutating, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), d.validating, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	install(t, config, d.definitions)
	time.Sleep(3 * time.Second) // the webhooks are known a moment after they are registered
}

// install installs definitions, waits until they are in force, and puts the toppings on the
// menu.
func install(t *testing.T, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if _, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"v1alpha1/pizzas", "v1beta1/pizzas", "v1alpha1/toppings"} {
		for {
			_, err := definitions.RESTClient().Get().AbsPath("/apis/" + v1beta1.GroupVersion.Group + "/" + path).DoRaw(t.Context())
			if err == nil {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tomato", "mozzarella", "salami"} {
		if _, err := client.Resource(v1alpha1.GroupVersion.WithResource("toppings")).Create(t.Context(), topping(t, name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

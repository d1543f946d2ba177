package pizza

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/internal/controlplane"
	"github.com/crdkit/crdkit/internal/webhooktest"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
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
	endpoint := Endpoint{URL: "https://pizza.example.com", ReviewVersion: "v1"}
	op, err := newOperator(&rest.Config{Host: toppingsServer(t, endpoint)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, op.toppings)
	pizzas := offlinePizzas(t, endpoint, op.handler(nil))
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
	cp := controlplane.ForTest(t)
	op, err := newOperator(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	url, ca := webhooktest.Serve(t, op.handler(nil))
	endpoint := Endpoint{URL: url, CABundle: ca, ReviewVersion: "v1"}
	registerInCluster(t, cp.Config(), endpoint)
	client, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tomato", "mozzarella", "salami"} {
		if _, err := client.Resource(v1alpha1.GroupVersion.WithResource("toppings")).Create(t.Context(), topping(t, name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, op.toppings)
	pizzas := offlinePizzas(t, endpoint, op.handler(nil))
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

func offlinePizzas(t *testing.T, e Endpoint, h http.Handler) *offline.Resource {
	t.Helper()
	crds, err := e.CustomResourceDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	definition, err := schema.New(crds[0])
	if err != nil {
		t.Fatal(err)
	}
	mutating, validating := e.WebhookConfigurations()
	pizzas, err := offline.New(definition, offline.Convert(h), offline.Mutate(h, mutating.Webhooks...), offline.Validate(h, validating.Webhooks...))
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
func toppingsServer(t *testing.T, e Endpoint) string {
	t.Helper()
	crds, err := e.CustomResourceDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	definition, err := schema.New(crds[1])
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

// registerInCluster installs the definitions and the webhooks, and waits until they are in
// force.
func registerInCluster(t *testing.T, config *rest.Config, e Endpoint) {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crds, err := e.CustomResourceDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	mutating, validating := e.WebhookConfigurations()
	var errs []error
	for _, crd := range crds {
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), mutating, metav1.CreateOptions{})
	errs = append(errs, err)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), validating, metav1.CreateOptions{})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
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
	time.Sleep(3 * time.Second) // the webhooks are known a moment after they are registered
}

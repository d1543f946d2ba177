package pizza

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// meals is what happens in the restaurant. The steps build upon each other.
var meals = []struct {
	name, verb, version, pizza, text string
	spec, fails                      string // the result: the spec, or the error
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

// TestMeals_WithoutCluster runs the operator's own webhooks, as it registers them.
func TestMeals_WithoutCluster(t *testing.T) {
	t.Parallel()
	client := dynamic.NewForConfigOrDie(inProcess(t))
	for _, m := range meals {
		t.Run(m.name, func(t *testing.T) {
			o, err := ask(t.Context(), client, m.verb, m.version, m.pizza, m.text)
			switch {
			case m.fails != "" && (err == nil || err.Error() != m.fails):
				t.Errorf("got %v, want %s", err, m.fails)
			case m.fails == "" && err != nil:
				t.Error(err)
			case m.spec != "":
				spec, err := json.Marshal(o.Object["spec"])
				expect.NoError(t, err)
				if diff := cmp.Diff(m.spec, string(spec)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestMeals_SameInACluster compares with a real API server: the objects, and the errors with
// their causes.
func TestMeals_SameInACluster(t *testing.T) {
	t.Parallel()
	offline, cluster := dynamic.NewForConfigOrDie(inProcess(t)), dynamic.NewForConfigOrDie(inCluster(t))
	type outcome struct {
		Object map[string]any
		Status metav1.Status
	}
	of := func(o *unstructured.Unstructured, err error) (out outcome) {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			out.Status = status.Status()
		} else if err != nil {
			t.Fatal(err)
		} else if o != nil {
			out.Object = o.Object
			for _, name := range []string{"uid", "creationTimestamp", "resourceVersion"} {
				unstructured.RemoveNestedField(o.Object, "metadata", name)
			}
			fields := o.GetManagedFields()
			for i := range fields {
				fields[i].Time = nil
			}
			slices.SortFunc(fields, func(a, b metav1.ManagedFieldsEntry) int { // they are ordered by their times
				return strings.Compare(a.APIVersion+a.Subresource, b.APIVersion+b.Subresource)
			})
			o.SetManagedFields(fields)
		}
		return out
	}
	for _, m := range meals {
		t.Run(m.name, func(t *testing.T) {
			want := of(ask(t.Context(), cluster, m.verb, m.version, m.pizza, m.text))
			got := of(ask(t.Context(), offline, m.verb, m.version, m.pizza, m.text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-cluster +offline):\n%s", diff)
			}
		})
	}
}

// inProcess opens the restaurant with an API server in this process.
func inProcess(t *testing.T) *rest.Config {
	t.Helper()
	return open(t, func(e Endpoint, ca []byte) *rest.Config {
		manifests, err := Manifests("", e, ca)
		expect.NoError(t, err)
		var menu []runtime.Object
		for _, name := range toppingNames {
			menu = append(menu, topping(name))
		}
		return apiservertest.Start(t, apiservertest.Manifests(manifests), apiservertest.Objects(menu...)).Config()
	})
}

// inCluster opens it with a real one.
func inCluster(t *testing.T) *rest.Config {
	t.Helper()
	return open(t, func(e Endpoint, ca []byte) *rest.Config {
		config := controlplane.ForTest(t).Config()
		registerInCluster(t, config, declared(t, e, ca))
		return config
	})
}

// open starts an API server with the toppings on the menu, and serves the operator's webhooks to
// it. The operator needs the server, and the server where the operator is.
func open(t *testing.T, start func(e Endpoint, ca []byte) *rest.Config) *rest.Config {
	t.Helper()
	operator := http.NewServeMux()
	url, ca := webhooktest.Serve(t, operator)
	endpoint := InCluster()
	endpoint.URL = url
	config := start(endpoint, ca)
	op, err := newOperator(config)
	expect.NoError(t, err)
	hooks, err := op.declare(endpoint)
	expect.NoError(t, err)
	operator.Handle("/", hooks)
	run(t, op.toppings)
	return config
}

// declarations are what the operator tells the API server.
type declarations struct {
	definitions []*apiextensionsv1.CustomResourceDefinition // of pizzas, and of toppings
	texts       [][]byte                                    // of the definitions
	mutating    *admissionregistrationv1.MutatingWebhookConfiguration
	validating  *admissionregistrationv1.ValidatingWebhookConfiguration
}

// declared returns what an operator at an endpoint declares.
func declared(t *testing.T, e Endpoint, ca []byte) (d declarations) {
	t.Helper()
	op, err := newOperator(&rest.Config{})
	expect.NoError(t, err)
	hooks, err := op.declare(e)
	expect.NoError(t, err)
	manifests, err := hooks.Manifests(ca)
	expect.NoError(t, err)
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
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		default:
			t.Errorf("the manifests have a %s", kind.Kind)
		}
		expect.NoError(t, errors.Join(errs...))
	}
	if len(d.definitions) != 2 {
		t.Fatalf("the manifests have %d definitions", len(d.definitions))
	}
	return d
}

func ask(ctx context.Context, client dynamic.Interface, verb, version, name, text string) (*unstructured.Unstructured, error) {
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

var toppingNames = []string{"tomato", "mozzarella", "salami"}

func topping(name string) *unstructured.Unstructured {
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
	expect.NoError(t, err)
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), d.mutating, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), d.validating, metav1.CreateOptions{})
	expect.NoError(t, err)
	install(t, config, d.definitions)
	time.Sleep(3 * time.Second) // the webhooks are known a moment after they are registered
}

// install installs definitions, waits until they are in force, and puts the toppings on the
// menu.
func install(t *testing.T, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(config)
	expect.NoError(t, err)
	for _, crd := range crds {
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
		expect.NoError(t, err)
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
	expect.NoError(t, err)
	for _, name := range toppingNames {
		_, err := client.Resource(v1alpha1.GroupVersion.WithResource("toppings")).Create(t.Context(), topping(name), metav1.CreateOptions{})
		expect.NoError(t, err)
	}
}

package registration_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook/registration"
)

// shop is an operator for pizzas in an API group of its own. Its toppings were called
// spec.topping in v1alpha1.
type shop struct {
	group    string
	registry *conversion.Registry
}

func newShop(t testing.TB, group string) *shop {
	t.Helper()
	s := &shop{group, conversion.NewRegistry(runtime.NewScheme())}
	expect.NoError(t, conversion.AddFields(s.registry, s.kind("v1alpha1"), "v1", conversion.Rename("spec.topping", "spec.toppings")))
	return s
}

func (s *shop) kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.group, Version: version, Kind: "Pizza"}
}

func (s *shop) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: s.group, Version: "v1", Resource: "pizzas"}
}

func (s *shop) definition() []byte {
	return []byte(fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pizzas.%[1]s
  labels: {app: pizza}
  creationTimestamp: null
spec:
  group: %[1]s
  names: {kind: Pizza, plural: pizzas}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: *any
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`, s.group))
}

// mutate is an admission function that counts in spec.seen how often it has been called.
func (s *shop) mutate() admission.Option {
	return admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
		seen, _, _ := unstructured.NestedInt64(u.Object, "spec", "seen")
		return unstructured.SetNestedField(u.Object, seen+1, "spec", "seen")
	}, admission.ForKind(s.kind("v1")))
}

// validate is one that does not like pineapple.
func (s *shop) validate(filters ...admission.Filter) admission.Option {
	return admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
		if toppings, _, _ := unstructured.NestedString(u.Object, "spec", "toppings"); toppings == "pineapple" {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "toppings"), toppings, "not in this house")}, nil
		}
		return nil, nil
	}, append(filters, admission.ForKind(s.kind("v1")))...)
}

func (s *shop) validateDelete() admission.Option {
	return admission.ValidateDelete(fine[*unstructured.Unstructured], admission.ForKind(s.kind("v1")))
}

// options declare everything but where it is.
func (s *shop) options() []registration.Option {
	return []registration.Option{s.definitions(), s.conversion(), s.mutating(), s.validating()}
}

func (s *shop) definitions() registration.Option { return registration.CRDs(s.definition()) }

func (s *shop) noConversion() registration.Option {
	return registration.NoConversion("pizzas." + s.group)
}

func (s *shop) conversion() registration.Option {
	return registration.Conversion("/convert", conversion.NewHandler(s.registry))
}

func (s *shop) mutating(changes ...func(*admissionregistrationv1.MutatingWebhook)) registration.Option {
	h := admission.NewHandler(runtime.NewScheme(), admission.ConvertWith(s.registry), s.mutate())
	return registration.Mutating("default.pizzas."+s.group, "/admit", h, changes...)
}

func (s *shop) validating(changes ...func(*admissionregistrationv1.ValidatingWebhook)) registration.Option {
	h := admission.NewHandler(runtime.NewScheme(), admission.ConvertWith(s.registry), s.validate())
	return registration.Validating("validate.pizzas."+s.group, "/validate", h, changes...)
}

// pizza returns one of v1alpha1.
func (s *shop) pizza(name, topping string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.group + "/v1alpha1", "kind": "Pizza",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"topping": topping},
	}}
}

// declare returns what the options declare, behind a Service.
func declare(t testing.TB, name string, opts ...registration.Option) *registration.Webhooks {
	t.Helper()
	hooks, err := registration.New(name, append(opts, registration.Service("pizza-system", "pizza-operator"))...)
	expect.NoError(t, err)
	return hooks
}

// bundle is a Bundle that tests change.
type bundle struct {
	mu  sync.Mutex
	pem []byte
}

func newBundle(pem []byte) *bundle { return &bundle{pem: pem} }

func (b *bundle) CABundle() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pem
}

func (*bundle) Ready(*http.Request) error { return nil }

func (b *bundle) set(pem []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pem = pem
}

// inject injects the bundle until the test ends, or the returned function is called.
func inject(t testing.TB, hooks *registration.Webhooks, config *rest.Config, b registration.Bundle) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hooks.Inject(ctx, config, b) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// ready is what /readyz asks.
func ready(hooks *registration.Webhooks) func() error {
	return func() error { return hooks.Ready(nil) }
}

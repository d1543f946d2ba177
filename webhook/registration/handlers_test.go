package registration_test

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/webhook/registration"
)

var (
	toppingKind = schema.GroupVersionKind{Group: "restaurant.programming-kubernetes.info", Version: "v1alpha1", Kind: "Topping"}
	pizzaKind   = schema.GroupVersionKind{Group: "restaurant.programming-kubernetes.info", Version: "v1alpha1", Kind: "Pizza"}
	anyRule     = admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}
)

// rules sets the rules of a webhook.
func rules(rules ...admissionregistrationv1.RuleWithOperations) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = rules }
}

func condition(name string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: "true"}
}

// restaurant returns the definitions of the pizza restaurant: namespaced pizzas, and
// toppings that are not.
func restaurant(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, resource := range []string{"pizzas", "toppings"} {
		text, err := os.ReadFile("../../examples/pizza/config/crd/restaurant.programming-kubernetes.info_" + resource + ".yaml")
		expect.NoError(t, err)
		all = append(all, text)
	}
	return all
}

func convert(s *shop) http.Handler { return conversion.NewHandler(s.registry) }

func admit(opts ...admission.Option) http.Handler {
	return admission.NewHandler(runtime.NewScheme(), opts...)
}

func admitConverted(s *shop, opts ...admission.Option) http.Handler {
	return admit(append(opts, admission.ConvertWith(s.registry))...)
}

// anyConverter converts to v1alpha1 too.
type anyConverter struct{}

func (anyConverter) Convert(_ context.Context, object []byte, _ schema.GroupVersion) ([]byte, error) {
	return object, nil
}

func (anyConverter) Versions(schema.GroupKind) []string { return []string{"v1alpha1"} }

func admitAnyConverter(opts ...admission.Option) http.Handler {
	return admit(append(opts, admission.ConvertWith(anyConverter{}))...)
}

func fine[T runtime.Object](context.Context, T) (field.ErrorList, error) { return nil, nil }

func admitV1alpha1(s *shop) http.Handler {
	return admit(admission.Validate(fine[*unstructured.Unstructured], admission.ForKind(s.kind("v1alpha1"))))
}

func admitVersions(s *shop) http.Handler {
	return admit(s.validate(), admission.ValidateDelete(fine[*unstructured.Unstructured], admission.ForKind(s.kind("v1alpha1"))))
}

func admitMetadata(kind schema.GroupVersionKind) http.Handler {
	return admit(admission.ValidateDelete(fine[*metav1.PartialObjectMetadata], admission.ForKind(kind)))
}

func admitScopes() http.Handler {
	return admit(
		admission.ValidateDelete(fine[*unstructured.Unstructured], admission.ForKind(toppingKind)),
		admission.ValidateDelete(fine[*unstructured.Unstructured], admission.ForKind(pizzaKind)),
	)
}

func admitEverything() http.Handler {
	return admit(admission.Validate(fine[*metav1.PartialObjectMetadata]))
}

func admitBuiltIn() http.Handler {
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	if err != nil {
		panic(err)
	}
	policies := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
	return admission.NewHandler(s,
		admission.Validate(fine[*corev1.Pod]),
		admission.Validate(fine[*corev1.Pod], admission.Subresource("status")),
		admission.ValidateDelete(fine[*metav1.PartialObjectMetadata], admission.ForKind(policies)),
	)
}

func admitKind(group, kind string) http.Handler {
	return admit(admission.Validate(fine[*metav1.PartialObjectMetadata], admission.ForKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})))
}

func admitScale() http.Handler {
	s, err := scheme.New(scheme.Functions(autoscalingv1.AddToScheme))
	if err != nil {
		panic(err)
	}
	return admission.NewHandler(s, admission.Validate(fine[*autoscalingv1.Scale], admission.Subresource("scale")))
}

// configuration reads the webhook configuration of a type from the manifests.
func configuration[T any](t testing.TB, hooks *registration.Webhooks) (into T) {
	t.Helper()
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, u := range testobj.ParseAll(t, text) {
		if u.GetKind() == reflect.TypeFor[T]().Name() {
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &into, true))
			return into
		}
	}
	t.Fatalf("the object is not in\n%s", text)
	return into
}

package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// admit prints the response of a webhook.
func admit(h http.Handler, r request) {
	hr := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(r.String()))
	hr.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, hr)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		panic(err)
	}
	switch a := review.Response; {
	case !a.Allowed:
		fmt.Println("denied:", a.Result.Message)
	case a.Patch != nil:
		fmt.Println("allowed, with the patch", string(a.Patch))
	default:
		fmt.Println("allowed")
	}
	for _, warning := range review.Response.Warnings {
		fmt.Println("warning:", warning)
	}
}

// mustScheme has pizzas, and the Scale of every scalable resource.
func mustScheme() *runtime.Scheme {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Functions(autoscalingv1.AddToScheme))
	if err != nil {
		panic(err)
	}
	return s
}

// fewToppings is a new rule, which stored pizzas violate.
func fewToppings(_ context.Context, p *v1beta1.Pizza) (errs field.ErrorList, _ error) {
	if n := len(p.Spec.Toppings); n > 1 {
		errs = append(errs, field.TooMany(field.NewPath("spec", "toppings"), n, 1))
	}
	return errs, nil
}

const (
	rich     = `{"metadata":{"name":"rich"},"spec":{"toppings":[{"name":"a"},{"name":"b"}]}}`
	richer   = `{"metadata":{"name":"rich"},"spec":{"toppings":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`
	baked    = `{"metadata":{"name":"rich","labels":{"baked":"yes"}},"spec":{"toppings":[{"name":"a"},{"name":"b"}]}}`
	deleting = `{"metadata":{"name":"rich","deletionTimestamp":"2026-11-21T00:00:00Z"},"spec":{"toppings":[{"name":"a"},{"name":"b"}]}}`
)

// Users can still label objects that violate a newer rule.
func ExampleIfChanged() {
	h := admission.NewHandler(mustScheme(), admission.Validate(fewToppings, admission.IfChanged("spec")))
	admit(h, request{operation: "UPDATE", object: baked, old: rich})
	admit(h, request{operation: "UPDATE", object: richer, old: rich})
	// Output:
	// allowed
	// denied: Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings: Too many: 3: must have at most 1 item
}

// The filter never denies an update that removes the last finalizer.
func ExampleUnlessDeleting() {
	h := admission.NewHandler(mustScheme(), admission.Validate(fewToppings, admission.UnlessDeleting()))
	admit(h, request{operation: "UPDATE", object: deleting, old: deleting})
	admit(h, request{operation: "UPDATE", object: rich, old: rich})
	// Output:
	// allowed
	// denied: Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings: Too many: 2: must have at most 1 item
}

// The function is called only for requests to the scale subresource.
func ExampleSubresource() {
	smallScale := func(_ context.Context, s *autoscalingv1.Scale) (errs field.ErrorList, _ error) {
		if s.Spec.Replicas > 10 {
			errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), s.Spec.Replicas, "the oven holds 10"))
		}
		return errs, nil
	}
	h := admission.NewHandler(mustScheme(),
		admission.Validate(fewToppings),
		admission.Validate(smallScale, admission.Subresource("scale")))
	admit(h, request{operation: "UPDATE", subresource: "scale", group: "autoscaling", version: "v1", kind: "Scale", object: `{"spec":{"replicas":11}}`, old: `{}`})
	// Output:
	// denied: Scale.autoscaling "margherita" is invalid: spec.replicas: Invalid value: 11: the oven holds 10
}

// The function is called only on CREATE, and records the creator.
func ExampleOn() {
	note := func(ctx context.Context, p *v1beta1.Pizza) error {
		request, _ := admission.RequestFrom(ctx)
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, "creator", request.UserInfo.Username)
		return nil
	}
	h := admission.NewHandler(mustScheme(), admission.Mutate(note, admission.On(admissionv1.Create)))
	admit(h, request{operation: "CREATE", object: rich})
	admit(h, request{operation: "UPDATE", object: baked, old: rich})
	// Output:
	// allowed, with the patch [{"op":"add","path":"/metadata/annotations","value":{"creator":"ada"}}]
	// allowed
}

// The function sees only the metadata of the object, which every kind has.
func ExampleForKind() {
	label := func(_ context.Context, m *metav1.PartialObjectMetadata) error {
		metav1.SetMetaDataLabel(&m.ObjectMeta, "team", "kitchen")
		return nil
	}
	h := admission.NewHandler(runtime.NewScheme(),
		admission.Mutate(label, admission.ForKind(v1beta1.GroupVersion.WithKind("Pizza"))))
	admit(h, request{object: rich})
	// Output:
	// allowed, with the patch [{"op":"add","path":"/metadata/labels","value":{"team":"kitchen"}}]
}

// The function compares the object with the stored object.
func ExampleOldFrom() {
	count := func(ctx context.Context, p *v1beta1.Pizza) error {
		old, err := admission.OldFrom[*v1beta1.Pizza](ctx)
		if err == nil && old != nil && len(old.Spec.Toppings) != len(p.Spec.Toppings) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, "toppings-before", fmt.Sprint(len(old.Spec.Toppings)))
		}
		return err
	}
	h := admission.NewHandler(mustScheme(), admission.Mutate(count))
	admit(h, request{operation: "UPDATE", object: richer, old: rich})
	// Output:
	// allowed, with the patch [{"op":"add","path":"/metadata/annotations","value":{"toppings-before":"2"}}]
}

// Users see the warning, and the audit log has the annotation.
func ExampleWarn() {
	judge := func(ctx context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
		if len(p.Spec.Toppings) > 2 {
			admission.Warn(ctx, "spec.toppings: %d of them are hard to cut", len(p.Spec.Toppings))
		}
		return nil, admission.AuditAnnotation(ctx, "toppings", fmt.Sprint(len(p.Spec.Toppings)))
	}
	admit(admission.NewHandler(mustScheme(), admission.Validate(judge)), request{object: richer})
	// Output:
	// allowed
	// warning: spec.toppings: 3 of them are hard to cut
}

// The function is for v1beta1. The request and the patch are in v1alpha1.
func ExampleConvertWith() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
	if err != nil {
		panic(err)
	}
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, toToppings, toNames); err != nil {
		panic(err)
	}
	h := admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(addTomato))
	admit(h, request{version: "v1alpha1", object: `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"x"},"spec":{"toppings":["salami"]}}`})
	// Output:
	// allowed, with the patch [{"op":"add","path":"/spec/toppings/0","value":"tomato"}]
}

// Users see the errors of all functions.
func ExampleValidate_several() {
	closed := func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), "restaurant is closed")}, nil
	}
	admit(admission.NewHandler(mustScheme(), admission.Validate(closed), admission.Validate(fewToppings)), request{object: rich})
	// Output:
	// denied: Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: [spec: Forbidden: restaurant is closed, spec.toppings: Too many: 2: must have at most 1 item]
}

// The observer prints the outcome of each request. See admission/metrics for Prometheus.
func ExampleObserve() {
	h := admission.NewHandler(mustScheme(), admission.Validate(fewToppings), admission.Observe(func(o admission.Observation) {
		fmt.Println(o.Operation, o.Kind.Kind, o.Decision)
	}))
	admit(h, request{object: rich})
	// Output:
	// CREATE Pizza denied
	// denied: Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings: Too many: 2: must have at most 1 item
}

// A test calls an admission function without a handler.
func ExampleWithRequest() {
	onlyAda := func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
		if request, _ := admission.RequestFrom(ctx); request.UserInfo.Username != "ada" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pizzas"}, request.Name, errors.New("only Ada bakes"))
		}
		return nil, nil
	}
	ctx := admission.WithRequest(context.Background(), &admissionv1.AdmissionRequest{Name: "x", UserInfo: authenticationv1.UserInfo{Username: "bob"}})
	_, err := onlyAda(ctx, &v1beta1.Pizza{})
	fmt.Println(err)
	// Output:
	// pizzas "x" is forbidden: only Ada bakes
}

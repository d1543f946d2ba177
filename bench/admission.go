package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Both sides call the same functions.

func defaultToppings(_ context.Context, p *v1alpha1.Pizza) error {
	if len(p.Spec.Toppings) == 0 {
		p.Spec.Toppings = []string{"tomato", "mozzarella", "salami"}
	}
	return nil
}

func addTopping(_ context.Context, p *v1beta1.Pizza) error {
	p.Spec.Toppings = append([]v1beta1.PizzaTopping{{Name: "tomato", Quantity: new(int32(1))}}, p.Spec.Toppings...)
	return nil
}

func knownToppings(_ context.Context, p *v1alpha1.Pizza) (errs field.ErrorList, _ error) {
	for i, name := range p.Spec.Toppings {
		if name != "tomato" && name != "mozzarella" {
			errs = append(errs, field.NotFound(field.NewPath("spec", "toppings").Index(i), name))
		}
	}
	return errs, nil
}

// defaulter and toppingValidator implement the interfaces of controller-runtime.
type defaulter[T runtime.Object] func(context.Context, T) error

func (d defaulter[T]) Default(ctx context.Context, obj T) error { return d(ctx, obj) }

type toppingValidator struct{}

func (toppingValidator) ValidateCreate(ctx context.Context, p *v1alpha1.Pizza) (peer.Warnings, error) {
	errs, err := knownToppings(ctx, p)
	if err == nil {
		err = errs.ToAggregate()
	}
	return nil, err
}

func (v toppingValidator) ValidateUpdate(ctx context.Context, _, p *v1alpha1.Pizza) (peer.Warnings, error) {
	return v.ValidateCreate(ctx, p)
}

func (toppingValidator) ValidateDelete(context.Context, *v1alpha1.Pizza) (peer.Warnings, error) {
	return nil, nil
}

// admission measures a mutating and a validating webhook, and a patch of a long list.
func (b bench) admission() error {
	s := pizzaScheme()
	standalone := func(hook *peer.Webhook) http.Handler {
		h, err := peer.StandaloneWebhook(hook, peer.StandaloneOptions{})
		if err != nil {
			panic(err)
		}
		return h
	}
	plain := pizza(1, 0)
	empty := strings.Replace(plain, `,"spec":{"toppings":["mozzarella","tomato","mozzarella"]},`, `,"spec":{},`, 1)
	var toppings []string
	for i := range 1000 {
		toppings = append(toppings, fmt.Sprintf(`{"name":"topping-%04d","quantity":%d}`, i, i%3+1))
	}
	long := strings.NewReplacer(
		`{"apiVersion":"`+v1alpha1.GroupVersion.String()+`","kind"`, `{"apiVersion":"`+v1beta1.GroupVersion.String()+`","kind"`,
		`,"spec":{"toppings":["mozzarella","tomato","mozzarella"]},`, `,"spec":{"toppings":[`+strings.Join(toppings, ",")+`]},`,
	).Replace(plain)
	for _, c := range []struct {
		name, version, object string
		ours, theirs          http.Handler
	}{
		{"admission/mutate", v1alpha1.GroupVersion.Version, empty,
			admission.NewHandler(s, admission.Mutate(defaultToppings)), standalone(peer.WithDefaulter(s, defaulter[*v1alpha1.Pizza](defaultToppings)))},
		{"admission/validate", v1alpha1.GroupVersion.Version, plain,
			admission.NewHandler(s, admission.Validate(knownToppings)), standalone(peer.WithValidator(s, toppingValidator{}))},
		{"admission/patch/1000", v1beta1.GroupVersion.Version, long,
			admission.NewHandler(s, admission.Mutate(addTopping)), standalone(peer.WithDefaulter(s, defaulter[*v1beta1.Pizza](addTopping)))},
	} {
		body := admissionReview(c.version, c.object)
		got, err := admitted(c.ours, body, c.object)
		if err != nil {
			return fmt.Errorf("%s: crdkit: %w", c.name, err)
		}
		want, err := admitted(c.theirs, body, c.object)
		if err != nil {
			return fmt.Errorf("%s: controller-runtime: %w", c.name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s: the two sides differ (-controller-runtime +crdkit):\n%s", c.name, diff)
		}
		b.faster(c.name, body, c.ours, c.theirs)
	}
	return nil
}

// admissionReview returns a review of the creation of a pizza.
func admissionReview(version, object string) []byte {
	gvk := fmt.Sprintf(`{"group":%q,"version":%q,"kind":"Pizza"}`, v1alpha1.GroupVersion.Group, version)
	resource := fmt.Sprintf(`{"group":%q,"version":%q,"resource":"pizzas"}`, v1alpha1.GroupVersion.Group, version)
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",`+
		`"kind":%s,"resource":%s,"requestKind":%s,"requestResource":%s,"name":"margherita-00001","namespace":"default","operation":"CREATE",`+
		`"userInfo":{"username":"kubernetes-admin","groups":["system:masters","system:authenticated"]},"object":%s,"oldObject":null,"dryRun":false,`+
		`"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply","fieldValidation":"Strict"}}}`,
		gvk, resource, gvk, resource, object)
}

// admitted returns the object after the patch in the response to a review.
func admitted(h http.Handler, body []byte, object string) (any, error) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		return nil, err
	}
	if review.Response == nil || !review.Response.Allowed {
		return nil, fmt.Errorf("answer %.500s: not allowed", w.Body)
	}
	text := []byte(object)
	if len(review.Response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(review.Response.Patch)
		if err != nil {
			return nil, err
		}
		if text, err = patch.Apply(text); err != nil {
			return nil, err
		}
	}
	var v any
	err := json.Unmarshal(text, &v)
	return v, err
}

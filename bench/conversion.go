package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// Both sides call the same functions. The functions copy the metadata, which the peer
// requires and crdkit allows.

func toHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	out.ObjectMeta = in.ObjectMeta
	out.Status.Cost = in.Status.Cost
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = make([]v1beta1.PizzaTopping, 0, len(in.Spec.Toppings))
next:
	for _, name := range in.Spec.Toppings {
		for i := range out.Spec.Toppings {
			if out.Spec.Toppings[i].Name == name {
				*out.Spec.Toppings[i].Quantity++
				continue next
			}
		}
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(int32(1))})
	}
	return nil
}

func fromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	out.ObjectMeta = in.ObjectMeta
	out.Status.Cost = in.Status.Cost
	if in.Spec.Toppings == nil {
		return nil
	}
	n := 0
	for _, t := range in.Spec.Toppings {
		n += int(*t.Quantity)
	}
	out.Spec.Toppings = make([]string, 0, n)
	for _, t := range in.Spec.Toppings {
		for range *t.Quantity {
			out.Spec.Toppings = append(out.Spec.Toppings, t.Name)
		}
	}
	return nil
}

func pizzaScheme() *runtime.Scheme {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	return s
}

// crdkitConversion returns the handler of crdkit.
func crdkitConversion(opts ...conversion.Option) http.Handler {
	reg := conversion.NewRegistry(pizzaScheme())
	if err := conversion.AddSpoke(reg, toHub, fromHub); err != nil {
		panic(err)
	}
	return conversion.NewHandler(reg, opts...)
}

// peerConversion returns the handler of controller-runtime.
func peerConversion() http.Handler {
	s := pizzaScheme()
	converter, err := peer.NewHubSpokeConverter(&v1beta1.Pizza{}, peer.NewSpokeConverter(&v1alpha1.Pizza{}, fromHub, toHub))(s)
	if err != nil {
		panic(err)
	}
	registry := peer.NewRegistry()
	if err := registry.RegisterConverter(v1beta1.GroupVersion.WithKind("Pizza").GroupKind(), converter); err != nil {
		panic(err)
	}
	return peer.NewWebhookHandler(s, registry)
}

// pizza returns a pizza of about 1.3 KB, with metadata like that of kubectl and a controller.
// The argument managed is the number of additional bytes of managedFields.
func pizza(i, managed int) string {
	spec := `{"toppings":["mozzarella","tomato","mozzarella"]}`
	applied := fmt.Sprintf(`{"apiVersion":"%s","kind":"Pizza","metadata":{"annotations":{},"name":"margherita-%05d","namespace":"default"},"spec":%s}`+"\n", v1alpha1.GroupVersion, i, spec)
	var more strings.Builder
	for n := 0; more.Len() < managed; n++ {
		fmt.Fprintf(&more, `,"f:field-%06d":{".":{},"f:name":{}}`, n)
	}
	text := fmt.Sprintf(`{"apiVersion":"%s","kind":"Pizza","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q},"creationTimestamp":"2026-11-21T03:15:10Z","generation":1,"managedFields":[{"apiVersion":"%s","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:cost":{}}},"manager":"pizza-operator","operation":"Update","subresource":"status","time":"2026-11-21T03:15:11Z"},{"apiVersion":"%s","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{".":{},"f:toppings":{}%s}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-11-21T03:15:10Z"}],"name":"margherita-%05d","namespace":"default","resourceVersion":"%d","uid":"a5b60485-5593-4916-99a6-%012d"},"spec":%s,"status":{"cost":2.7}}`,
		v1alpha1.GroupVersion, applied, v1beta1.GroupVersion, v1alpha1.GroupVersion, more.String(), i, 1000+i, i, spec)
	if !json.Valid([]byte(text)) {
		panic(text)
	}
	return text
}

// review returns a review of n pizzas.
func review(n, managed int) []byte {
	objects := make([]string, n)
	for i := range objects {
		objects[i] = pizza(i, managed)
	}
	return fmt.Appendf(nil, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","desiredAPIVersion":"%s","objects":[%s]}}`,
		v1beta1.GroupVersion, strings.Join(objects, ","))
}

// sink counts the bytes of a response, and discards them.
type sink struct {
	header http.Header
	code   int
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(code int)        { s.code = code }
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }

// post sends a body to a handler with as little overhead as possible.
func post(h http.Handler, body []byte) *sink {
	r, err := http.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	w := &sink{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(w, r)
	return w
}

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// seen is an observation whose error is text, and without the duration.
type seen struct {
	Version, Kind string
	Operation     admissionv1.Operation
	SubResource   string
	Decision      admission.Decision
	Err           string
}

// observer returns an option that appends to the list.
func observer(list *[]seen) admission.Option {
	return admission.Observe(func(o admission.Observation) {
		s := seen{o.Kind.Version, o.Kind.Kind, o.Operation, o.SubResource, o.Decision, ""}
		if o.Err != nil {
			s.Err = o.Err.Error()
		}
		*list = append(*list, s)
	})
}

// judged has functions that do, with a pizza, what its first topping says.
func judged() []admission.Option {
	first := func(p *v1beta1.Pizza) string {
		if len(p.Spec.Toppings) == 0 {
			return ""
		}
		return p.Spec.Toppings[0].Name
	}
	return []admission.Option{
		admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
			if first(p) == "patch" {
				p.Labels = map[string]string{"hot": "yes"}
			}
			return nil
		}),
		admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			switch first(p) {
			case "deny":
				return field.ErrorList{field.Forbidden(field.NewPath("spec"), "no")}, nil
			case "forbid":
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pizzas"}, "x", errors.New("closed"))
			case "error":
				return nil, errors.New("out of flour")
			case "panic":
				panic("dough everywhere")
			}
			return nil, nil
		}),
	}
}

func with(topping string) string {
	return pizza("v1beta1", `,"spec":{"toppings":[{"name":"`+topping+`"}]}`)
}

// An observer sees the outcome of each request.
func TestObserve(t *testing.T) {
	const create, update = admissionv1.Create, admissionv1.Update
	for name, c := range map[string]struct {
		r    request
		want seen
	}{
		"allowed":                {request{object: with("a")}, seen{"v1beta1", "Pizza", create, "", admission.Allowed, ""}},
		"patched":                {request{operation: "UPDATE", object: with("patch")}, seen{"v1beta1", "Pizza", update, "", admission.Patched, ""}},
		"denied by field errors": {request{object: with("deny")}, seen{"v1beta1", "Pizza", create, "", admission.Denied, `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec: Forbidden: no`}},
		"denied by an API error": {request{object: with("forbid")}, seen{"v1beta1", "Pizza", create, "", admission.Denied, `pizzas "x" is forbidden: closed`}},
		"an object that does not fit": {request{object: pizza("v1beta1", `,"spec":[]`)}, seen{"v1beta1", "Pizza", create, "", admission.Denied,
			"Pizza default/margherita: the object cannot be decoded into its Go type: json: cannot unmarshal array into Go struct field Pizza.spec of type v1beta1.PizzaSpec"}},
		"an error":                     {request{object: with("error")}, seen{"v1beta1", "Pizza", create, "", admission.Undecided, "Pizza default/margherita: out of flour"}},
		"a panic":                      {request{object: with("panic")}, seen{"v1beta1", "Pizza", create, "", admission.Undecided, "Pizza default/margherita: the admission function panicked: dough everywhere"}},
		"an operation for no function": {request{operation: "DELETE"}, seen{"v1beta1", "Pizza", admissionv1.Delete, "", admission.Allowed, ""}},
		"a subresource":                {request{operation: "UPDATE", subresource: "status", object: with("deny")}, seen{"v1beta1", "Pizza", update, "status", admission.Allowed, ""}},
		"the kind of a subresource":    {request{operation: "UPDATE", subresource: "scale", kind: "Scale"}, seen{"", "", update, "scale", admission.Allowed, ""}},
		"a version of the scheme": {request{version: "v1alpha1", object: with("a")}, seen{"v1alpha1", "Pizza", create, "", admission.Undecided,
			"Pizza default/margherita: the functions for kind Pizza.restaurant.programming-kubernetes.info are for version v1beta1, not v1alpha1: use ConvertWith, or add functions for v1alpha1"}},
		"a version that is made up": {request{version: "v9", object: with("a")}, seen{"", "Pizza", create, "", admission.Undecided,
			"Pizza default/margherita: the functions for kind Pizza.restaurant.programming-kubernetes.info are for version v1beta1, not v9: use ConvertWith, or add functions for v9"}},
		"a kind without functions": {request{version: "v1alpha1", kind: "Topping", object: with("a")}, seen{"v1alpha1", "Topping", create, "", admission.Undecided,
			"Topping default/margherita: no function is registered for kind Topping.restaurant.programming-kubernetes.info"}},
		"an operation that is made up": {request{operation: "BAKE", object: with("a")}, seen{"v1beta1", "Pizza", "", "", admission.Allowed, ""}},
	} {
		var got []seen
		h := admission.NewHandler(pizzaScheme(t), append(judged(), observer(&got))...)
		post(t, h, c.r.String())
		if diff := cmp.Diff([]seen{c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A converted request is observed in its own version.
func TestObserve_ConvertedRequest(t *testing.T) {
	var got []seen
	h := admission.NewHandler(pizzaScheme(t), append(judged(), observer(&got), admission.ConvertWith(registry(t)))...)
	ask(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", `,"spec":{"toppings":["patch"]}`)})
	if diff := cmp.Diff([]seen{{"v1alpha1", "Pizza", admissionv1.Create, "", admission.Patched, ""}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A body that is not a review is observed as undecided.
func TestObserve_NoReview(t *testing.T) {
	var got []seen
	h := admission.NewHandler(pizzaScheme(t), append(judged(), observer(&got))...)
	good := request{object: with("a")}.String()
	for _, body := range []string{"", "{", "[]", "{}", good[:len(good)-1], strings.Repeat(" ", 1<<20), strings.Replace(good, `"kind":{`, `"kind":7,"x":{`, 1)} {
		got = nil
		if w := post(t, h, body); w.Code < 400 {
			t.Errorf("%.100q is answered with %d", body, w.Code)
		}
		if len(got) != 1 || got[0].Err == "" {
			t.Errorf("%.100q: got %+v, want one observation with an error", body, got)
			continue
		}
		got[0].Err = ""
		if diff := cmp.Diff(seen{Decision: admission.Undecided}, got[0]); diff != "" {
			t.Errorf("%.100q (-want +got):\n%s", body, diff)
		}
	}
	got = nil
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if len(got) != 1 || got[0].Decision != admission.Undecided {
		t.Errorf("a GET: got %+v", got)
	}
}

// A denial is observed with the status that the user sees.
func TestObserve_Denial(t *testing.T) {
	var got error
	h := admission.NewHandler(pizzaScheme(t), append(judged(), admission.Observe(func(o admission.Observation) { got = o.Err }))...)
	response := ask(t, h, request{object: with("deny")})
	var status apierrors.APIStatus
	if !errors.As(got, &status) {
		t.Fatalf("got %v", got)
	}
	if diff := cmp.Diff(*response.Result, status.Status()); diff != "" {
		t.Errorf("what the user sees and what is observed differ:\n%s", diff)
	}
}

// Observers are called in their order, and after the answer.
func TestObserve_Order(t *testing.T) {
	w := httptest.NewRecorder()
	var calls []string
	note := func(name string) admission.Option {
		return admission.Observe(func(admission.Observation) {
			calls = append(calls, fmt.Sprintf("%s %d %t", name, w.Code, w.Body.Len() > 0))
		})
	}
	h := admission.NewHandler(pizzaScheme(t), append(judged(), note("first"), note("second"))...)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("nonsense"))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	if diff := cmp.Diff([]string{"first 400 true", "second 400 true"}, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The duration is that of the whole request.
func TestObserve_Duration(t *testing.T) {
	var began time.Time
	var inside, duration time.Duration
	h := admission.NewHandler(pizzaScheme(t),
		admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
			began = time.Now()
			for inside == 0 { // until the clock goes on
				inside = time.Since(began)
			}
			return nil, nil
		}),
		admission.Observe(func(o admission.Observation) { duration = o.Duration }))
	start := time.Now()
	ask(t, h, request{object: with("a")})
	if whole := time.Since(start); duration < inside || duration > whole {
		t.Errorf("the duration is %s: the function alone took %s, and the call of the handler %s", duration, inside, whole)
	}
}

// Concurrent requests are observed one by one.
func TestObserve_Concurrent(t *testing.T) {
	var mu sync.Mutex
	got := map[admission.Decision]int{}
	h := admission.NewHandler(pizzaScheme(t), append(judged(), admission.Observe(func(o admission.Observation) {
		mu.Lock()
		defer mu.Unlock()
		got[o.Decision]++
	}))...)
	var wg sync.WaitGroup
	for range 20 {
		for _, topping := range []string{"a", "patch", "deny", "error"} {
			wg.Go(func() { post(t, h, request{object: with(topping)}.String()) })
		}
	}
	wg.Wait()
	want := map[admission.Decision]int{admission.Allowed: 20, admission.Patched: 20, admission.Denied: 20, admission.Undecided: 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A nil function is found when the program starts.
func TestObserve_NilFunction(t *testing.T) {
	expect.ErrorContains(t, fault(pizzaScheme(t), append(judged(), admission.Observe(nil))...), "the function of Observe is nil")
}

// An observer that panics takes no answer back.
func TestObserve_Panic(t *testing.T) {
	var got []seen
	h := admission.NewHandler(pizzaScheme(t), append(judged(), admission.Observe(func(admission.Observation) { panic("no ink") }), observer(&got))...)
	server := httptest.NewServer(h)
	defer server.Close()
	answer, err := http.Post(server.URL, "application/json", strings.NewReader(request{object: with("a")}.String()))
	if err != nil || answer.StatusCode != http.StatusOK || len(got) != 1 {
		t.Errorf("got %v, %v, %v", answer, err, got)
	}
	if err == nil {
		answer.Body.Close()
	}
}

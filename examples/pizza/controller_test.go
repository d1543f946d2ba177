package pizza

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// apiServer answers every request with a code, and notes what it was asked.
func apiServer(t *testing.T, code int) (op *operator, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, fmt.Sprintf("%s %s %s %s", r.UserAgent(), r.Method, r.URL.Path, body))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code != http.StatusOK {
			reason := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[code]
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)
			return
		}
		fmt.Fprint(w, `{"kind":"Pizza","apiVersion":"restaurant.programming-kubernetes.info/v1beta1"}`)
	}))
	t.Cleanup(server.Close)
	op, err := newOperator(&rest.Config{Host: server.URL})
	expect.NoError(t, err)
	expect.NoError(t, op.toppings.GetIndexer().Add(&v1alpha1.Topping{ObjectMeta: metav1.ObjectMeta{Name: "tomato"}, Spec: v1alpha1.ToppingSpec{Cost: 0.5}}))
	return op, asked
}

// pizzaOf returns a pizza in namespace ns whose UID is its name.
func pizzaOf(name string, cost *float64, toppings ...string) *v1beta1.Pizza {
	p := &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"}, Status: v1beta1.PizzaStatus{Cost: cost}}
	for _, t := range toppings {
		p.Spec.Toppings = append(p.Spec.Toppings, v1beta1.PizzaTopping{Name: t})
	}
	return p
}

// Only a wrong cost is written, and only to the status.
func TestReconcile_Writes(t *testing.T) {
	const patch = "pizza-operator PATCH /apis/restaurant.programming-kubernetes.info/v1beta1/namespaces/ns/pizzas/p/status "
	for name, c := range map[string]struct {
		pizza *v1beta1.Pizza
		want  []string
	}{
		"no cost yet":       {pizzaOf("p", nil, "tomato", "tomato"), []string{patch + `{"metadata":{"uid":"u"},"status":{"cost":1}}`}},
		"an old cost":       {pizzaOf("p", new(7.0), "tomato"), []string{patch + `{"metadata":{"uid":"u"},"status":{"cost":0.5}}`}},
		"the right cost":    {pizzaOf("p", new(0.5), "tomato"), nil},
		"a missing topping": {pizzaOf("p", new(0.5), "tomato", "nails"), []string{patch + `{"metadata":{"uid":"u"},"status":{"cost":null}}`}},
		"missing, no cost":  {pizzaOf("p", nil, "nails"), nil},
		"nothing on it":     {pizzaOf("p", new(0.0)), nil},
	} {
		op, asked := apiServer(t, http.StatusOK)
		expect.NoError(t, op.pizzas.GetIndexer().Add(c.pizza))
		if err := op.controller.reconcile(t.Context(), cache.NewObjectName("ns", "p")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, *asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A pizza that has gone is left alone.
func TestReconcile_PizzaHasGone(t *testing.T) {
	op, asked := apiServer(t, http.StatusNotFound)
	if err := op.controller.reconcile(t.Context(), cache.NewObjectName("ns", "p")); err != nil || len(*asked) > 0 {
		t.Errorf("a pizza that is not in the cache: %v, %v", err, *asked)
	}
	expect.NoError(t, op.pizzas.GetIndexer().Add(pizzaOf("p", nil, "tomato")))
	if err := op.controller.reconcile(t.Context(), cache.NewObjectName("ns", "p")); err != nil || len(*asked) != 1 {
		t.Errorf("a pizza that is not in the cluster: %v, %v", err, *asked)
	}
}

// A write that failed is tried again.
func TestReconcile_FailedWrite(t *testing.T) {
	for _, code := range []int{http.StatusConflict, http.StatusForbidden} {
		op, _ := apiServer(t, code)
		expect.NoError(t, op.pizzas.GetIndexer().Add(pizzaOf("p", nil, "tomato")))
		if err := op.controller.reconcile(t.Context(), cache.NewObjectName("ns", "p")); err == nil {
			t.Errorf("%d is no error", code)
		}
	}
}

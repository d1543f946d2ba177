package pizza

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	testingcache "k8s.io/client-go/tools/cache/testing"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := NewRegistry(s)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestRegistry_FitsDefinition(t *testing.T) {
	if err := registry(t).Check(declared(t, InCluster(), nil).texts...); err != nil {
		t.Error(err)
	}
}

func object(version, rest string) string {
	return `{"apiVersion":"restaurant.programming-kubernetes.info/` + version + `","kind":"Pizza","metadata":{"name":"p"}` + rest + `}`
}

func TestConversion_BothWays(t *testing.T) {
	reg := registry(t)
	for _, c := range []struct{ alpha, beta, back string }{
		{``, ``, ``},
		{`,"spec":{"toppings":[]}`, `,"spec":{"toppings":[]}`, ``},
		{`,"spec":{"toppings":["a"]},"status":{"cost":0}`, `,"spec":{"toppings":[{"name":"a","quantity":1}]},"status":{"cost":0}`, ``},
		{`,"spec":{"toppings":["a","b","a"]}`, `,"spec":{"toppings":[{"name":"a","quantity":2},{"name":"b","quantity":1}]}`, `,"spec":{"toppings":["a","a","b"]}`},
	} {
		beta, err := reg.Convert(t.Context(), []byte(object("v1alpha1", c.alpha)), v1beta1.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object("v1beta1", c.beta), string(beta)); diff != "" {
			t.Errorf("%s to v1beta1 (-want +got):\n%s", c.alpha, diff)
		}
		back, err := reg.Convert(t.Context(), beta, v1alpha1.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if c.back == "" {
			c.back = c.alpha
		}
		if diff := cmp.Diff(object("v1alpha1", c.back), string(back)); diff != "" {
			t.Errorf("%s back to v1alpha1 (-want +got):\n%s", c.beta, diff)
		}
	}
}

// A topping without quantity is one portion.
func TestConversion_NoQuantity(t *testing.T) {
	got, err := registry(t).Convert(t.Context(), []byte(object("v1beta1", `,"spec":{"toppings":[{"name":"a"}]}`)), v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object("v1alpha1", `,"spec":{"toppings":["a"]}`), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Absurd quantities are refused.
func TestConversion_AbsurdQuantities(t *testing.T) {
	for toppings, want := range map[string]string{
		`{"name":"a","quantity":0}`:                                  "spec.toppings[0].quantity: Invalid value: 0: must be at least 1",
		`{"name":"a","quantity":-1}`:                                 "spec.toppings[0].quantity: Invalid value: -1: must be at least 1",
		`{"name":"a","quantity":1000000000}`:                         "spec.toppings[0].quantity: Invalid value: 1000000000: v1alpha1 lists at most 10000 portions of toppings",
		`{"name":"a"},{"name":"b","quantity":10000}`:                 "spec.toppings[1].quantity: Invalid value: 10000: v1alpha1 lists at most 10000 portions of toppings",
		`{"name":"` + strings.Repeat("a", 1<<20) + `","quantity":4}`: "spec.toppings[0].quantity: Invalid value: 4: v1alpha1 lists at most 3145728 bytes of names",
		`{"name":"a","quantity":99999999999}`:                        "cannot unmarshal number 99999999999 into Go struct field PizzaTopping.spec.toppings.quantity of type int32",
	} {
		_, err := registry(t).Convert(t.Context(), []byte(object("v1beta1", `,"spec":{"toppings":[`+toppings+`]}`)), v1alpha1.GroupVersion)
		if err == nil || !strings.Contains(err.Error(), "cannot convert Pizza p from") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", toppings, err, want)
		}
	}
}

// Any pizza of the hub comes back from v1alpha1 as it was: no quantity is lost,
// nor is the order.
func TestConversion_AnyHubPizza(t *testing.T) {
	reg := registry(t)
	rapid.Check(t, func(t *rapid.T) {
		var toppings []string
		portions := v1beta1.MaxPortions
		for i := range rapid.IntRange(0, 10).Draw(t, "toppings") {
			n := rapid.IntRange(1, portions-9+i).Draw(t, "quantity")
			portions -= n
			toppings = append(toppings, fmt.Sprintf(`{"name":"t%d","quantity":%d}`, i, n))
		}
		beta := object("v1beta1", `,"spec":{"toppings":[`+strings.Join(toppings, ",")+`]}`)
		alpha, err := reg.Convert(t.Context(), []byte(beta), v1alpha1.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		back, err := reg.Convert(t.Context(), alpha, v1beta1.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(beta, string(back)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// A pizza without toppings becomes a salami pizza.
func TestDefaultToppings(t *testing.T) {
	pizza := &v1beta1.Pizza{}
	if err := DefaultToppings(t.Context(), pizza); err != nil {
		t.Fatal(err)
	}
	want := []v1beta1.PizzaTopping{{Name: "tomato", Quantity: new(int32(1))}, {Name: "mozzarella", Quantity: new(int32(1))}, {Name: "salami", Quantity: new(int32(1))}}
	if diff := cmp.Diff(want, pizza.Spec.Toppings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := DefaultToppings(t.Context(), pizza); err != nil || len(pizza.Spec.Toppings) != 3 {
		t.Errorf("defaulting twice gives %v, %v", pizza.Spec.Toppings, err)
	}
}

func TestCost_ExactToTheCent(t *testing.T) {
	op, _ := apiServer(t, http.StatusOK)
	for name, cost := range map[string]float64{"tomato": 0.1, "salami": 0.2} {
		if err := op.toppings.GetIndexer().Add(&v1alpha1.Topping{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ToppingSpec{Cost: cost}}); err != nil {
			t.Fatal(err)
		}
	}
	cost, missing := op.controller.cost(pizzaOf("p", nil, "tomato", "salami", "salami", "salami", "nails"))
	if *cost != 0.7 || !cmp.Equal(missing, []string{"nails"}) {
		t.Errorf("got %v and %v, want 0.7 and nails", *cost, missing)
	}
}

// A changed topping asks for the cost of its pizzas.
func TestFollow_ChangedTopping(t *testing.T) {
	source := testingcache.NewFakeControllerSource()
	for name, topping := range map[string]string{"a": "tomato", "b": "tomato", "c": "salami"} {
		source.Add(pizzaOf(name, nil, topping))
	}
	pizzas := reference.NewInformer(source, &v1beta1.Pizza{}, 0, cache.Indexers{})
	pizzasOf, err := reference.NewReferrers(pizzaResource, pizzas, reference.ClusterScoped(toppingResource), ToppingsOf)
	if err != nil {
		t.Fatal(err)
	}
	run(t, pizzas)
	if !cache.WaitForCacheSync(t.Context().Done(), pizzasOf.HasSynced) {
		t.Fatal("the referrers have not synced")
	}
	op, _ := apiServer(t, http.StatusOK)
	op.controller.pizzasOf = pizzasOf
	queue := newQueue()
	defer queue.ShutDown()
	op.controller.enqueueReferrers(queue, cache.DeletedFinalStateUnknown{Key: "tomato"})
	got := map[cache.ObjectName]bool{}
	for queue.Len() > 0 {
		name, _ := queue.Get()
		got[name] = true
	}
	if diff := cmp.Diff(map[cache.ObjectName]bool{{Namespace: "ns", Name: "a"}: true, {Namespace: "ns", Name: "b"}: true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

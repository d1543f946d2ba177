package apiserver

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
)

// TestScheme tests that the codecs of the server lose nothing: encoding, defaults, deep copies, and
// the conversion of each version to the hub and back.
func TestScheme(t *testing.T) {
	const counted = "the order of toppings does not matter: v1beta1 counts them"
	roundtrip.TestScheme(t, newTestScheme(t),
		roundtrip.Normalize(counted, func(p *v1alpha1.Pizza) { slices.Sort(p.Spec.Toppings) }),
		roundtrip.Normalize(counted, func(l *v1alpha1.PizzaList) {
			for i := range l.Items {
				slices.Sort(l.Items[i].Spec.Toppings)
			}
		}),
		roundtrip.Funcs(func(toppings *[]v1beta1.PizzaTopping, c randfill.Continue) {
			c.FillNoCustom(toppings)
			for i := range *toppings {
				topping := &(*toppings)[i]
				topping.Name += string(rune('a' + i)) // each topping once
				topping.Quantity = new(1 + c.Int31n(v1beta1.MaxPortions))
			}
		}))
}

// newTestScheme returns the scheme of a server.
func newTestScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o.scheme
}

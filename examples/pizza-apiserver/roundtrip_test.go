package apiserver

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
)

// The pizzas and toppings are random, and such as the API server would accept them: the
// definitions say which. Both versions go through the internal hub and back, and the hub
// through both versions.
func TestConversion(t *testing.T) {
	roundtrip.Test(t, newTestRegistry(t), append(definitionsFor(t), anyOrder, inHub)...)
}

func FuzzConversion(f *testing.F) {
	roundtrip.Fuzz(f, newTestRegistry(f), append(definitionsFor(f), anyOrder, inHub)...)
}

// The codecs of the server encode and decode each kind, defaults are the same twice, the deep
// copies are deep, and each version goes through the internal one, as the codecs take it, and
// the internal one through each version.
func TestScheme(t *testing.T) {
	roundtrip.TestScheme(t, newTestScheme(t), anyOrder, inLists, inHub, roundtrip.Funcs(func(topping *v1beta1.PizzaTopping, c randfill.Continue) {
		c.FillNoCustom(topping)
		topping.Quantity = new(1 + c.Int31n(v1beta1.MaxPortions)) // the default comes before the conversion
	}))
}

func newTestScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newTestRegistry(t testing.TB) *conversion.Registry {
	t.Helper()
	reg, err := NewRegistry(newTestScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func definitionsFor(t testing.TB) (options []roundtrip.Option) {
	t.Helper()
	crds, err := readDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range crds {
		options = append(options, roundtrip.CRD(text))
	}
	return options
}

// inHub has each topping of the internal version once, and at least one portion of it.
var inHub = roundtrip.Funcs(func(toppings *[]restaurant.PizzaTopping, c randfill.Continue) {
	c.FillNoCustom(toppings)
	for i := range *toppings {
		topping := &(*toppings)[i]
		topping.Name = strconv.Itoa(i) + topping.Name
		topping.Quantity = 1 + c.Int31n(v1beta1.MaxPortions)
	}
})

const counted = "the order of toppings does not matter: the hub counts them"

var (
	anyOrder = roundtrip.Normalize(counted, func(p *v1alpha1.Pizza) { slices.Sort(p.Spec.Toppings) })
	inLists  = roundtrip.Normalize(counted, func(l *v1alpha1.PizzaList) {
		for i := range l.Items {
			slices.Sort(l.Items[i].Spec.Toppings)
		}
	})
)

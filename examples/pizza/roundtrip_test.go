package pizza

import (
	"os"
	"slices"
	"testing"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/roundtrip"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), definition(t), history, anyOrder)
}

func FuzzConversion(f *testing.F) {
	roundtrip.Fuzz(f, registry(f), definition(f), history, anyOrder)
}

func TestStoredPizzas(t *testing.T) {
	roundtrip.Golden(t, registry(t), "testdata/golden", "v0.1", definition(t))
}

func definition(t testing.TB) roundtrip.Option {
	t.Helper()
	text, err := os.ReadFile("config/crd/restaurant.programming-kubernetes.info_pizzas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return roundtrip.CRD(text)
}

var history = roundtrip.History("config/releases")

var anyOrder = roundtrip.Normalize("the order of toppings does not matter: v1beta1 counts them", func(p *v1alpha1.Pizza) {
	slices.Sort(p.Spec.Toppings)
})

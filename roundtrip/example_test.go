package roundtrip_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/scheme"
)

func ExampleTest() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub); err != nil {
		panic(err)
	}

	// v1alpha1 has no quantities, so the generated pizzas have none.
	plain := func(t *v1beta1.PizzaTopping, c randfill.Continue) { c.Fill(&t.Name) }
	testConversion := func(t *testing.T) {
		roundtrip.Test(t, reg, roundtrip.Funcs(plain))
	}
	fmt.Println("passes:", run(testConversion))
	// Output: passes: true
}

func pizzaToHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	out.Status = v1beta1.PizzaStatus(*in.Status.DeepCopy())
	if in.Spec.Toppings != nil {
		out.Spec.Toppings = []v1beta1.PizzaTopping{}
	}
	for _, name := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

func pizzaFromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	out.Status = v1alpha1.PizzaStatus(*in.Status.DeepCopy())
	if in.Spec.Toppings != nil {
		out.Spec.Toppings = []string{}
	}
	for _, topping := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
	}
	return nil
}

// run runs a test without output, and reports whether it passes.
func run(test func(t *testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	defer verbose.Set(verbose.String())
	verbose.Set("false")
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestConversion", F: test}})
}

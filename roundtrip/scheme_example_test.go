package roundtrip_test

import (
	"fmt"
	"testing"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/scheme"
)

func ExampleTestScheme() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	testTypes := func(t *testing.T) {
		roundtrip.TestScheme(t, s, roundtrip.SkipLaw(roundtrip.CBOR, "the API servers we know do not speak it"))
	}
	fmt.Println("passes:", run(testTypes))
	// Output: passes: true
}

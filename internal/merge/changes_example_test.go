package merge_test

import (
	"fmt"

	"github.com/crdkit/crdkit/internal/merge"
)

func ExampleDiff() {
	keys := merge.KeysOf("spec.toppings", "name")
	h := []byte(`{"spec":{"size":"XL","toppings":[{"name":"ham","organic":true},{"name":"olive"}]}}`)
	b := []byte(`{"spec":{"size":"L","toppings":[{"name":"ham"},{"name":"olive"}]}}`) // neither XL nor organic

	changes, err := merge.Diff(b, h, keys)
	fmt.Println(string(changes.Encode()), err)

	// The user makes it small, and adds basil.
	b2 := []byte(`{"spec":{"size":"S","toppings":[{"name":"basil"},{"name":"ham"},{"name":"olive"}]}}`)
	changes, err = merge.Parse(changes.Encode())
	if err != nil {
		panic(err)
	}
	hub, _, err := changes.Apply(b2, keys, nil, make([]merge.Mode, len(changes)), false)
	fmt.Println(string(hub), err)
	// Output:
	// [{"path":["spec","size"],"value":"XL","was":"hGP1Vvl8-P0"},{"path":["spec","toppings",{"key":{"name":"ham"}},"organic"],"value":true}] <nil>
	// {"spec":{"size":"S","toppings":[{"name":"basil"},{"name":"ham","organic":true},{"name":"olive"}]}} <nil>
}

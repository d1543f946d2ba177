package merge_test

import (
	"encoding/json"
	"fmt"

	"github.com/crdkit/crdkit/internal/merge"
)

func ExamplePatch() {
	// The Go type is older than the object: it does not know organic.
	type topping struct {
		Name string `json:"name"`
	}
	var pizza struct {
		Toppings []topping `json:"toppings"`
		Status   struct{}  `json:"status"`
	}
	raw := []byte(`{"toppings":[{"name":"ham","organic":true},{"name":"olive"}]}`)
	if err := json.Unmarshal(raw, &pizza); err != nil {
		panic(err)
	}

	before, _ := json.Marshal(pizza)
	pizza.Toppings = append([]topping{{Name: "basil"}}, pizza.Toppings...)
	after, _ := json.Marshal(pizza)

	ops, _, err := merge.Patch(raw, before, after, nil, false, true)
	fmt.Println(string(ops), err)
	// Output: [{"op":"add","path":"/toppings/0","value":{"name":"basil"}}] <nil>
}

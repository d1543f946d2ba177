package jsondiff_test

import (
	"encoding/json"
	"fmt"

	"github.com/crdkit/crdkit/internal/jsondiff"
)

func ExampleWalk() {
	var before, after any
	for text, into := range map[string]*any{
		`{"a":1,"b":[1,{"c":2}],"d":null,"e":[1],"f":{},"g":"x"}`:   &before,
		`{"b":[1,{"c":3}],"d":null,"e":[1,2],"f":[],"g":"x","h":0}`: &after,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			panic(err)
		}
	}
	jsondiff.Walk(before, after, func(d jsondiff.Difference) { fmt.Println(d.Path, d.Was, d.Before, d.Is, d.After) })
	// Output:
	// [a] true 1 false <nil>
	// [b 1 c] true 2 true 3
	// [e] true [1] true [1 2]
	// [f] true map[] true []
	// [h] false <nil> true 0
}

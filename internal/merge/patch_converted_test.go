package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A conversion may have reordered a list.
func TestPatch_ReorderedList(t *testing.T) {
	for name, c := range map[string]struct{ raw, before, after, want string }{
		"found by key": {
			`{"items":[{"name":"b","size":1,"x":1},{"name":"a","size":2,"x":2}]}`,
			`{"items":[{"name":"a","size":2},{"name":"b","size":1}]}`,
			`{"items":[{"name":"a","size":100},{"name":"b","size":1}]}`,
			`{"items":[{"name":"a","size":100,"x":2},{"name":"b","size":1,"x":1}]}`,
		},
		"found by text": {
			`{"toppings":["tomato","pineapple","tomato"]}`,
			`{"toppings":["tomato","tomato","pineapple"]}`,
			`{"toppings":["tomato","tomato"]}`,
			`{"toppings":["tomato","tomato"]}`,
		},
		"found by a number": {
			`{"items":[{"size":1,"x":1},{"size":2,"x":2}]}`,
			`{"items":[{"size":2},{"size":1}]}`,
			`{"items":[{"size":2},{"size":7}]}`,
			`{"items":[{"size":2,"x":2},{"size":7,"x":1}]}`,
		},
		"not found": {
			`{"items":[{"size":1,"x":1},{"size":2,"x":2}]}`,
			`{"items":[{"size":20},{"size":10}]}`,
			`{"items":[{"size":20},{"size":7}]}`,
			`{"items":[{"size":20},{"size":7}]}`,
		},
		"not changed": {
			`{"items":["b","a"],"n":1}`, `{"items":["a","b"],"n":1}`, `{"items":["a","b"],"n":2}`,
			`{"items":["b","a"],"n":2}`,
		},
		"in order, and spelled otherwise": {
			`{"items":[{"q":1.0,"x":1},{"q":2.50,"s":"\u0061","y":null,"x":2}]}`,
			`{"items":[{"q":1,"z":0,"e":{}},{"q":2.5,"s":"a","y":"","z":0,"e":{}}]}`,
			`{"items":[{"q":1,"z":0,"e":{}},{"q":3,"s":"a","y":"","z":0,"e":{}}]}`,
			`{"items":[{"q":1.0,"x":1},{"q":3,"s":"a","y":null,"x":2}]}`,
		},
	} {
		ops, _, err := Patch([]byte(c.raw), []byte(c.before), []byte(c.after), nil, true, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(decode(t, []byte(c.want)), decode(t, apply(t, []byte(c.raw), ops))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, ops, diff)
		}
	}
}

// A conversion may change the order of a list in any way. The known fields of each
// element are those of the function, and the unknown ones stay with it.
func TestPatch_ReorderingMixesNothingUp(t *testing.T) {
	type element struct {
		name          string
		size, unknown int
	}
	text := func(elements []element, unknown bool) []byte {
		var parts []string
		for _, e := range elements {
			part := fmt.Sprintf(`{"name":%q,"size":%d`, e.name, e.size)
			if unknown && e.unknown > 0 {
				part += fmt.Sprintf(`,"unknown":%d`, e.unknown)
			}
			parts = append(parts, part+"}")
		}
		return []byte(`{"list":[` + strings.Join(parts, ",") + `]}`)
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e]{1,2}`), 1, 6, rapid.ID[string]).Draw(t, "names")
		var raw []element
		for i, name := range names {
			raw = append(raw, element{name, rapid.IntRange(0, 2).Draw(t, "size"), i + 1})
		}
		before := rapid.Permutation(raw).Draw(t, "before")
		after := append([]element(nil), before...)
		after[rapid.IntRange(0, len(after)-1).Draw(t, "which")].size = 9
		if rapid.Bool().Draw(t, "remove") {
			after = after[1:]
		}
		if rapid.Bool().Draw(t, "add") {
			after = append(after, element{name: "new"})
		}
		ops, _, err := Patch(text(raw, true), text(before, false), text(after, false), nil, true, true)
		if err != nil {
			t.Fatal(err)
		}
		got := decode(t, apply(t, text(raw, true), ops))
		if diff := cmp.Diff(decode(t, text(after, true)), got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", ops, diff)
		}
	})
}

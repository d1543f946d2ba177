package generate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

const (
	metadata = `"apiVersion": "example.com/v1", "kind": "Pizza", "metadata": {"name": "a"}`
	toppings = `{type: object, required: [spec], properties: {spec: {type: object, properties: {
		size: {type: string, enum: [small, large], default: large}, note: {type: string, nullable: true},
		limits: {type: object, properties: {cpu: {x-kubernetes-int-or-string: true}, memory: {x-kubernetes-int-or-string: true}}},
		labels: {type: object, additionalProperties: {type: string}},
		toppings: {type: array, maxItems: 20, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {
			type: object, required: [name], properties: {
				name: {type: string, minLength: 1, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$'},
				quantity: {type: integer, format: int32, minimum: 1, maximum: 100, default: 1},
				cost: {type: number, minimum: 0},
				extras: {type: array, items: {type: string, minLength: 2}}}}}}%s}}}`
)

func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	expect.NoError(t, json.Unmarshal([]byte(text), &out))
	return normal(out).(map[string]any)
}

// The object of zeros is the least.
func TestGenerator_Zeros(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{type: object}`, `{` + metadata + `}`},
		{strings.Replace(toppings, "%s", "", 1), `{` + metadata + `, "spec": {}}`},
		{
			`{type: object, required: [a, b, c, d, e, f, g, h, i, j, k], properties: {
				a: {type: integer}, b: {type: integer, minimum: 3}, c: {type: integer, maximum: -4}, d: {type: number, minimum: 0.5},
				e: {type: string, minLength: 2}, f: {type: string, pattern: '^[a-z]+-[0-9]{2}$', minLength: 6}, g: {type: boolean},
				h: {type: array, items: {type: string}, minItems: 2}, i: {type: object, properties: {x: {type: string, default: z}}},
				j: {x-kubernetes-int-or-string: true}, k: {type: array, x-kubernetes-list-type: set, minItems: 3, items: {type: integer}}}}`,
			`{` + metadata + `, "a": 0, "b": 3, "c": -4, "d": 0.5, "e": "aa", "f": "aaa-00", "g": false, "h": ["", ""], "i": {}, "j": 0, "k": [0, 1, 2]}`,
		},
		{
			`{type: object, properties: {a: {type: string, format: date}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}`,
			`{` + metadata + `, "a": "2000-01-01"}`,
		},
		{
			// the least is refused: of what was found, the smallest
			`{type: object, properties: {a: {type: integer}, b: {type: string}}, x-kubernetes-validations: [{rule: "has(self.a) && self.a > 2"}]}`,
			`{` + metadata + `, "a": 3}`,
		},
	} {
		g := schemaOf(t, c.schema).generator(t)
		got, err := g.Object(choices.Replay(nil))
		expect.NoError(t, err)
		if diff := cmp.Diff(decoded(t, c.want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func specOf(object map[string]any) map[string]any { return object["spec"].(map[string]any) }

func toppingsOf(object map[string]any) (out []map[string]any) {
	list, _ := specOf(object)["toppings"].([]any)
	for _, v := range list {
		out = append(out, v.(map[string]any))
	}
	return out
}

func TestGenerator_Shrinks(t *testing.T) {
	rules := map[string]string{
		"without CEL": "",
		"with CEL": `, x-kubernetes-validations: [
			{rule: "!has(self.toppings) || self.toppings.map(t, t.quantity).sum() <= 100"},
			{rule: "!has(self.note) || self.note != 'null'"},
			{rule: "!has(self.labels) || self.labels.all(k, self.labels[k].size() > 1)"},
			{rule: "!has(self.limits) || has(self.limits.cpu)"}]`,
	}
	for _, c := range []struct {
		name, want string
		holds      func(object map[string]any) bool
	}{
		{"a topping with a quantity above 3", `{"toppings": [{"name": "a", "quantity": 4}]}`, func(object map[string]any) bool {
			for _, topping := range toppingsOf(object) {
				if n, ok := topping["quantity"].(int64); ok && n > 3 {
					return true
				}
			}
			return false
		}},
		{"two toppings", `{"toppings": [{"name": "a"}, {"name": "aa"}]}`, func(object map[string]any) bool { return len(toppingsOf(object)) > 1 }},
		{"a topping with extras", `{"toppings": [{"name": "a", "extras": ["aa"]}]}`, func(object map[string]any) bool {
			for _, topping := range toppingsOf(object) {
				if extras, _ := topping["extras"].([]any); len(extras) > 0 {
					return true
				}
			}
			return false
		}},
		{"null", `{"note": null}`, func(object map[string]any) bool { note, ok := specOf(object)["note"]; return ok && note == nil }},
		{"a long name", `{"toppings": [{"name": "aaaaaaaaaaaaaaaaaaaaa"}]}`, func(object map[string]any) bool {
			for _, topping := range toppingsOf(object) {
				if len(topping["name"].(string)) > 20 {
					return true
				}
			}
			return false
		}},
	} {
		for with, rules := range rules {
			t.Run(c.name+" "+with, func(t *testing.T) {
				g := schemaOf(t, strings.Replace(toppings, "%s", rules, 1)).generator(t)
				try := func(src *choices.Source) (choices.Found[map[string]any], bool) {
					object, err := g.Object(src)
					expect.NoError(t, err)
					return choices.Found[map[string]any]{Value: object, Size: len(text(object)), Tree: src.Tree()}, c.holds(object)
				}
				want := decoded(t, `{`+metadata+`, "spec": `+c.want+`}`)
				shrunk := 0
				for i := 0; i < 2000 && shrunk < 5; i++ {
					found, ok := try(choices.New(1, c.name, i))
					if !ok {
						continue
					}
					shrunk++
					least, tries := choices.Shrink(choices.Shrinker{Tries: 4000, Time: time.Minute}, found, func(tree *choices.Tree) (choices.Found[map[string]any], bool) {
						return try(choices.Replay(tree))
					})
					t.Logf("from %d to %d in %d tries", found.Size, least.Size, tries)
					// Another name of one letter is smaller than the one that is wanted.
					if diff := cmp.Diff(want, least.Value); diff != "" && least.Size >= len(text(want)) {
						t.Errorf("of object %d (-want +got):\n%s", i, diff)
					}
				}
				if shrunk == 0 {
					t.Error("none was found")
				}
			})
		}
	}
}

func TestGenerator_ShrinksLargeSchema(t *testing.T) {
	s := gatewayAPI(t)["HTTPRoute"]
	g := s.generator(t)
	for i := range 100 {
		try := func(src *choices.Source) (choices.Found[map[string]any], bool) {
			object, err := g.Object(src)
			expect.NoError(t, err)
			found := choices.Found[map[string]any]{Value: object, Size: len(text(object)), Tree: src.Tree()}
			return found, strings.Contains(text(specOf(object)), `"sectionName"`)
		}
		found, ok := try(choices.New(1, t.Name(), i))
		if !ok {
			continue
		}
		least, tries := choices.Shrink(choices.Shrinker{Tries: 3000}, found, func(tree *choices.Tree) (choices.Found[map[string]any], bool) {
			return try(choices.Replay(tree))
		})
		t.Logf("from %d to %d in %d tries", found.Size, least.Size, tries)
		if tries > 600 {
			t.Errorf("%d tries: parts are not dropped as a whole", tries)
		}
		want := decoded(t, `{`+metadata+`, "spec": {"parentRefs": [{"name": "a", "sectionName": "a"}]}}`)
		if diff := cmp.Diff(want, least.Value); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
	t.Error("none was found")
}

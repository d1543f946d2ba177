package generate

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// A schema without objects is an error that names the path.
func TestGenerator_SchemaWithoutObjects(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{type: integer, minimum: 3, maximum: 2}`, "spec.v: no integer is between 3 and 2"},
		{`{type: integer, maximum: 10.5}`, "spec.v: no integer is accepted: the bound 10.5"},
		{`{type: integer, format: int32, maximum: 3000000000}`, "spec.v: no integer is accepted"},
		{`{type: integer, minimum: 5, maximum: 6, multipleOf: 7}`, "spec.v: no integer"},
		{`{type: number, minimum: 3, maximum: 2}`, "spec.v: no number is between 3 and 2"},
		{`{type: number, minimum: 3, maximum: 3, exclusiveMinimum: true}`, "spec.v: no number"},
		{`{type: number, minimum: 1, maximum: 2, multipleOf: 5}`, "spec.v: 64 numbers tried"},
		{`{type: string, minLength: 3, maxLength: 2}`, "spec.v: no string has at least 3 and at most 2"},
		{`{type: string, pattern: '(?!a)'}`, "spec.v: no string is accepted: pattern"},
		{`{type: string, pattern: '^a$', minLength: 2}`, "spec.v: no string is found"},
		{`{type: string, pattern: 'a{1000}', maxLength: 3}`, "spec.v: no string is found"},
		{`{type: string, pattern: '^((a{30}){30})$', maxLength: 3}`, "spec.v: no string is found"},
		{`{type: string, minLength: 1000000000}`, "spec.v: minLength is 1000000000"},
		{`{type: string, enum: [a, b], pattern: c}`, "spec.v: no value of its enum"},
		{`{type: array, items: {type: string}, minItems: 1000000000}`, "spec.v: at least 10"},
		{`{type: array, items: {type: array, items: {type: string}, minItems: 1000}, minItems: 1000}`, "spec.v: at least 10"},
		{`{type: array, items: {type: string}, minItems: 3, maxItems: 2}`, "spec.v: at least 3 elements, and at most 2"},
		{`{type: array, x-kubernetes-list-type: set, items: {type: boolean}, minItems: 3}`, "spec.v: no element is found that differs"},
		{`{type: array, x-kubernetes-list-type: set, items: {type: string, pattern: '^[ab]$'}, minItems: 3}`, "spec.v: no element is found that differs"},
		{`{type: array, items: {type: integer, minimum: 3, maximum: 2}, minItems: 1}`, "spec.v[*]: no integer"},
		{`{type: object, additionalProperties: {type: string}, minProperties: 1000000000}`, "spec.v: at least 10"},
		{`{type: object, additionalProperties: {type: integer, minimum: 3, maximum: 2}, minProperties: 1}`, "spec.v[*]: no integer"},
		{`{type: object, required: [a]}`, "spec.v: a is required, but not a property"},
		{`{type: object, required: [a], maxProperties: 0, properties: {a: {type: string}}}`, "spec.v: at most 0 properties, but 1"},
		{`{type: object, minProperties: 2, properties: {a: {type: string}}}`, "spec.v: only 1 of 2 properties are found"},
		{`{type: object, properties: {a: {type: string}}, not: {}}`, "spec.v: value validations: 65 values tried"},
		{`{type: integer, oneOf: [{minimum: 3}, {minimum: 3}]}`, "spec.v: value validations: 65 values tried"},
		{`{type: integer, anyOf: [{minimum: 3, maximum: 2}, {minimum: 5, maximum: 4}]}`, "spec.v: no integer"},
		{`{type: integer, x-kubernetes-validations: [{rule: "self != self"}]}`, "objects tried, none is accepted: spec.v: Invalid value: 0: failed rule"},
	} {
		s := schemaOf(t, `{type: object, required: [spec], properties: {spec: {type: object, required: [v], properties: {v: `+c.schema+`}}}}`)
		_, err := New(pizza, s.structural, s.rules)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.schema, err, c.want)
		}
	}
	if _, err := New(pizza, nil, nil); err == nil {
		t.Error("New accepts a nil schema")
	}
	if _, err := New(pizza, &structuralschema.Structural{}, nil); err != nil {
		t.Error(err)
	}
}

// A deep schema has small objects.
func TestGenerator_DeepSchema(t *testing.T) {
	schema := `{type: string}`
	for range 12 {
		schema = `{type: array, items: {type: object, properties: {a: ` + schema + `, b: {type: object, additionalProperties: {type: string}}}}}`
	}
	s := schemaOf(t, `{type: object, properties: {v: `+schema+`}}`)
	for _, object := range objectsOf(t, s.generator(t), 100) {
		if n := len(key(object)); n > 1<<20 {
			t.Errorf("an object has %d bytes", n)
		}
	}
}

// An object is a function of its draws.
func TestGenerator_Deterministic(t *testing.T) {
	s := schemaOf(t, strings.Replace(toppings, "%s", `, x-kubernetes-validations: [{rule: "!has(self.note) || !has(self.size)"}]`, 1))
	g, again := s.generator(t), s.generator(t)
	for i, object := range objectsOf(t, g, 300) {
		other, err := again.Object(choices.New(1, t.Name(), i))
		expect.NoError(t, err)
		if diff := cmp.Diff(object, other); diff != "" {
			t.Fatalf("object %d (-first +again):\n%s", i, diff)
		}
	}
}

// A generator is for several goroutines.
func TestGenerator_Concurrent(t *testing.T) {
	s := schemaOf(t, strings.Replace(toppings, "%s", `, x-kubernetes-validations: [{rule: "!has(self.note) || !has(self.size)"}]`, 1))
	g := s.generator(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if _, err := g.Object(choices.New(uint64(i), "", j)); err != nil {
					t.Error(err)
				}
				if _, err := g.Outside(choices.New(uint64(i), "", j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Values at the edges are frequent.
func TestGenerator_Edges(t *testing.T) {
	s := schemaOf(t, `{type: object, required: [required], properties: {
		required: {type: integer, minimum: -1000, maximum: 1000}, any: {type: integer}, text: {type: string, maxLength: 100},
		list: {type: array, items: {type: boolean}, maxItems: 50}, number: {type: number, minimum: 1.5, maximum: 9.5}, object: {type: object, nullable: true}}}`)
	seen := map[string]int{}
	const n = 4000
	for _, object := range objectsOf(t, s.generator(t), n) {
		for name, v := range object {
			switch v := v.(type) {
			case []any:
				seen["elements "+key(len(v))]++
			case string:
				seen[name+" "+key(v)]++
			default:
				seen[name+" "+key(v)]++
			}
			seen[name]++
		}
	}
	for what, often := range map[string][2]float64{ // of a hundred
		"any": {40, 75}, "text": {40, 75}, "list": {40, 75}, "object": {40, 75},
		"required 0": {10, 60}, "required 1000": {2, 30}, "required -1000": {1, 30}, "required 1": {1, 10}, "required -1": {0.5, 10},
		"any 9223372036854775807": {1, 20}, "any -9223372036854775808": {1, 20},
		`text ""`: {5, 40}, "number 1.5": {5, 40}, "number 9.5": {1, 20},
		"elements 0": {10, 50}, "elements 2": {3, 30}, "elements 50": {2, 10},
		"object null": {3, 20},
	} {
		if got := float64(seen[what]) * 100 / n; got < often[0] || got > often[1] {
			t.Errorf("%s: %.1f of a hundred objects, want %v", what, got, often)
		}
	}
}

package generate

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/tier"
)

// randomSchema writes a schema in YAML's flow style, with value validations that may
// contradict each other.
type randomSchema struct{ *rand.Rand }

func (r randomSchema) maybe(of int, text string) string {
	if r.Intn(of) == 0 {
		return text
	}
	return ""
}

func (r randomSchema) one(of ...string) string { return of[r.Intn(len(of))] }

func (r randomSchema) structural(depth int) string {
	types := []string{"string", "integer", "number", "boolean", "intOrString"}
	if depth > 0 {
		types = append(types, "object", "object", "map", "array", "set", "listMap", "unknown")
	}
	kind := r.one(types...)
	nullable := r.maybe(6, ", nullable: true")
	junctors := r.junctors(kind)
	switch kind {
	case "string":
		return `{type: string` + nullable + r.maybe(5, ", default: abc") + r.values(kind) + junctors + `}`
	case "integer", "number":
		return `{type: ` + kind + nullable + r.maybe(5, ", default: 4") + r.values(kind) + junctors + `}`
	case "boolean":
		return `{type: boolean` + nullable + r.maybe(3, ", default: true") + `}`
	case "intOrString":
		return `{x-kubernetes-int-or-string: true` + nullable + r.maybe(2, ", anyOf: [{type: integer}, {type: string}]") + r.one(r.values("string"), r.values("integer")) + `}`
	case "map":
		return `{type: object` + nullable + `, additionalProperties: ` + r.structural(depth-1) + r.maybe(4, ", minProperties: 2") + r.maybe(4, ", maxProperties: 3") + `}`
	case "array":
		return `{type: array` + nullable + r.maybe(4, ", uniqueItems: true") + `, items: ` + r.structural(depth-1) + r.maybe(4, ", minItems: 2") + r.maybe(4, ", maxItems: 3") + `}`
	case "set":
		return `{type: array, x-kubernetes-list-type: set, items: ` + r.structural(0) + r.maybe(4, ", minItems: 2") + `}`
	case "listMap":
		return `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object, required: [a], properties: {` +
			`a: {type: string` + r.values("string") + `}, b: {type: integer, default: 4}, c: ` + r.structural(depth-1) + `}` + r.junctors("object") + `}}`
	case "unknown":
		return `{type: object, x-kubernetes-preserve-unknown-fields: true` + r.maybe(3, ", x-kubernetes-embedded-resource: true") + `, properties: {a: ` + r.structural(depth-1) + `}}`
	}
	return `{type: object` + nullable + r.maybe(3, ", required: [a]") + r.maybe(5, ", minProperties: 2") + r.maybe(5, ", maxProperties: 2") +
		`, properties: {a: ` + r.structural(depth-1) + `, b: ` + r.structural(depth-1) + `, c: ` + r.structural(depth-1) + `}` + junctors + `}`
}

// values are value validations for a type.
func (r randomSchema) values(kind string) string {
	switch kind {
	case "string":
		return r.maybe(4, `, pattern: "`+r.one("^a", "b", "^[a-z]+$", "^([a-z0-9]{2}-)*x$", "^.{2,4}$")+`"`) +
			r.maybe(4, fmt.Sprintf(", minLength: %d", r.Intn(4))) + r.maybe(4, fmt.Sprintf(", maxLength: %d", r.Intn(8))) +
			r.maybe(6, `, format: `+r.one(strings.Fields(formats)...)) + r.maybe(8, `, enum: [a, abc, "", b]`)
	case "integer", "number":
		return r.maybe(4, fmt.Sprintf(", minimum: %d", r.Intn(20)-10)) + r.maybe(4, fmt.Sprintf(", maximum: %v", float64(r.Intn(40)-10)/float64(1+r.Intn(2)))) +
			r.maybe(6, ", exclusiveMinimum: true") + r.maybe(6, ", exclusiveMaximum: true") + r.maybe(5, `, multipleOf: `+r.one("1", "2", "3", "0.5", "0.1")) +
			r.maybe(8, `, enum: [1, 4, 7]`)
	case "object":
		return `, ` + r.one(`required: [a]`, `required: [b]`, `required: [a, c]`, `properties: {a: {minLength: 2, minimum: 2}}`, `minProperties: 1`, `maxProperties: 1`, `not: {required: [b]}`, `properties: {b: {pattern: a, maximum: 3}}, required: [c]`)
	}
	return ""
}

func (r randomSchema) junctors(kind string) string {
	branch := func() string {
		out := `{` + strings.TrimPrefix(r.values(kind), ", ")
		return out + `}`
	}
	out := ""
	if r.Intn(4) == 0 {
		out += `, ` + r.one("anyOf", "oneOf", "allOf") + `: [` + branch() + `, ` + branch() + r.maybe(2, `, `+branch()) + `]`
	}
	if r.Intn(10) == 0 && kind != "boolean" {
		out += `, not: {` + strings.TrimPrefix(r.values(kind), ", ") + `}`
	}
	return out
}

// Objects of random schemas are accepted.
func TestGenerator_RandomSchemas(t *testing.T) {
	made, rules, broken := 0, 0, 0
	n := tier.Pick(50, 120)
	for i := range n {
		r := randomSchema{rand.New(rand.NewSource(int64(i + 600)))}
		text := `{type: object, properties: {v: ` + r.structural(3) + `, w: ` + r.structural(2) + `}}`
		ok := t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := schemaOf(t, text)
			s.cel = nil
			g, err := New(pizza, s.structural, nil)
			if err != nil {
				t.Skip(err)
			}
			for _, object := range objectsOf(t, g, 20) {
				made++
				s.check(t, object)
			}
			for j := range 5 {
				rules++
				object, err := g.Outside(choices.New(1, t.Name(), 1+j))
				if err != nil {
					continue // a rule may be a tautology, or about what cannot be
				}
				broken++
				s.refused(t, object)
			}
		})
		if !ok {
			t.Log(text)
		}
	}
	if made < 16*n || broken < rules*9/10 {
		t.Errorf("%d objects, %d of %d rules broken", made, broken, rules)
	}
	t.Logf("%d objects, %d of %d rules broken", made, broken, rules)
}

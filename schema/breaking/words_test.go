package breaking

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/schema"
)

// The proofs go by words of the server's errors. If it says something else one day, this
// fails, and not the proofs in silence.
func TestTheServerStillUsesTheWords(t *testing.T) {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apples.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: apples, kind: Apple}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: %s}}}}
`
	said := map[string]string{}
	for _, test := range []struct{ about, old, new string }{
		{"type", "{type: string}", "{type: integer}"},
		{"required", "{type: object}", "{type: object, required: [b], properties: {b: {type: string}}}"},
		{"enum", "{type: string}", "{type: string, enum: [x]}"},
		{"maximum", "{type: integer}", "{type: integer, maximum: 5}"},
		{"minimum", "{type: integer}", "{type: integer, minimum: 5}"},
		{"multipleOf", "{type: integer}", "{type: integer, multipleOf: 5}"},
		{"upper", "{type: string}", "{type: string, maxLength: 5}"},
		{"upper", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 5}"},
		{"upper", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string}, maxProperties: 5}"},
		{"lower", "{type: string}", "{type: string, minLength: 5}"},
		{"lower", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 5}"},
		{"lower", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string}, minProperties: 5}"},
		{"pattern", "{type: string}", "{type: string, pattern: '^a$'}"},
		{"format", "{type: string}", "{type: string, format: date-time}"},
		{"format", "{type: integer}", "{type: integer, format: int32}"},
		{"duplicate", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}"},
	} {
		var definitions []*schema.Definition
		for _, s := range []string{test.old, test.new} {
			d, err := schema.Parse(fmt.Appendf(nil, definition, s))
			if err != nil {
				t.Fatal(err)
			}
			definitions = append(definitions, d)
		}
		for _, c := range Changes(t.Context(), definitions[0], definitions[1]) {
			if c.Proof == nil {
				t.Errorf("%s of %s: %s", test.about, test.new, c)
				continue
			}
			said[test.about] += c.Proof.Errors.ToAggregate().Error() + "\n"
		}
	}
	for _, about := range slices.Sorted(maps.Keys(words)) {
		for _, word := range words[about] {
			if !strings.Contains(said[about], word) {
				t.Errorf("no error about %s says %q:\n%s", about, word, said[about])
			}
		}
	}
}

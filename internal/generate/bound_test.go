package generate

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/test/expect"
)

// Values at the bounds of another version and next to them are among a hundred.
func TestGenerator_BoundsOfOtherVersions(t *testing.T) {
	const label, subdomain = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	for name, c := range map[string]struct {
		schema, other string
		want          []string
	}{
		"label":      {`{type: string, maxLength: 253, pattern: '` + label + `'}`, `{type: string, maxLength: 63}`, []string{"63", "64", "253"}},
		"subdomain":  {`{type: string, maxLength: 253, pattern: '` + subdomain + `'}`, `{type: string, maxLength: 63}`, []string{"63", "64", "253"}},
		"repeated":   {`{type: string, pattern: '^[a-z]{1,253}$'}`, `{type: string, maxLength: 100}`, []string{"100", "101"}},
		"alternates": {`{type: string, pattern: '^(x|[a-z]+:/[a-z/]*)$'}`, `{type: string, maxLength: 200, minLength: 4}`, []string{"3", "4", "200", "201"}},
		"no pattern": {`{type: string}`, `{type: string, maxLength: 1000}`, []string{"1000", "1001"}},
		"no bound":   {`{type: string}`, `{type: string}`, []string{"21", "64", "254"}},
		"format":     {`{type: string, format: k8s-long-name}`, `{type: string, maxLength: 63}`, []string{"63", "64"}},
		"items":      {`{type: array, items: {type: integer}}`, `{type: array, maxItems: 100}`, []string{"100", "101"}},
		"set":        {`{type: array, x-kubernetes-list-type: set, items: {type: string, pattern: '^[a-z]+$'}}`, `{type: array, maxItems: 100}`, []string{"100", "101"}},
		"properties": {`{type: object, additionalProperties: {type: string}}`, `{type: object, maxProperties: 40, minProperties: 1}`, []string{"0", "1", "40", "41"}},
		"maximum":    {`{type: integer}`, `{type: integer, maximum: 70001, minimum: -3}`, []string{"70001", "70002", "-3", "-4"}},
		"number":     {`{type: number, maximum: 1e5}`, `{type: number, maximum: 123.5}`, []string{"123.5", "124.5", "100000"}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed := func(text string) *structuralschema.Structural {
				return schemaOf(t, `{type: object, required: [v], properties: {v: `+text+`}}`).structural
			}
			g, err := New(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pizza"}, parsed(c.schema), nil, parsed(c.other))
			expect.NoError(t, err)
			seen := map[string]int{}
			for _, object := range objectsOf(t, g, 100) {
				switch v := object["v"].(type) {
				case string:
					seen[fmt.Sprint(utf8.RuneCountInString(v))]++
				case []any:
					seen[fmt.Sprint(len(v))]++
				case map[string]any:
					seen[fmt.Sprint(len(v))]++
				default:
					seen[fmt.Sprint(v)]++
				}
			}
			for _, want := range c.want {
				if seen[want] == 0 {
					t.Errorf("%s is not among %v", want, slices.Sorted(maps.Keys(seen)))
				}
			}
		})
	}
}

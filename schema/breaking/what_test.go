package breaking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/schema/breaking"
)

// Whoever accepts a change by what it says does not accept another one. Changes that have but one
// outcome, such as a field that is removed, are not listed.
func TestWhat_IdentifiesTheChange(t *testing.T) {
	long := strings.Repeat("x", 200)
	fields := func(fields string) string { return "{type: object, properties: {" + fields + "}}" }
	const preserve = "x-kubernetes-preserve-unknown-fields: true"
	for _, test := range []struct{ name, old, one, other string }{ // schemas of a property; the other one allows less
		{"an enum", "{type: string}", "{type: string, enum: [p, q, r]}", "{type: string, enum: [p, q]}"},
		{"an enum of long values", "{type: string}", "{type: string, enum: [" + long + ", " + long + "q]}", "{type: string, enum: [" + long + "]}"},
		{"enum values removed", "{type: string, enum: [p, q, r]}", "{type: string, enum: [p, q]}", "{type: string, enum: [p]}"},
		{"long enum values removed", "{type: string, enum: [p, " + long + "q, " + long + "r]}", "{type: string, enum: [p, " + long + "r]}", "{type: string, enum: [p]}"},
		{"maximum", "{type: integer, maximum: 9}", "{type: integer, maximum: 5}", "{type: integer, maximum: 4}"},
		{"exclusive maximum", "{type: integer, maximum: 9}", "{type: integer, maximum: 5}", "{type: integer, maximum: 5, exclusiveMaximum: true}"},
		{"exclusive minimum", "{type: integer}", "{type: integer, minimum: 5}", "{type: integer, minimum: 5, exclusiveMinimum: true}"},
		{"minLength", "{type: string}", "{type: string, minLength: 1}", "{type: string, minLength: 2}"},
		{"multipleOf", "{type: integer}", "{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 4}"},
		{"a pattern", "{type: string}", "{type: string, pattern: '^" + long + ".'}", "{type: string, pattern: '^" + long + "a'}"},
		{"a format", "{type: string}", "{type: string, format: date}", "{type: string, format: date-time}"},
		{"allOf", "{type: integer}", "{type: integer, allOf: [{maximum: 5}]}", "{type: integer, allOf: [{maximum: 4}]}"},
		{"anyOf", "{type: integer}", "{type: integer, anyOf: [{maximum: 5}, {minimum: 9}]}", "{type: integer, anyOf: [{maximum: 4}, {minimum: 9}]}"},
		{"another anyOf", "{type: integer, anyOf: [{maximum: 5}, {minimum: 9}, {multipleOf: 7}]}", "{type: integer, anyOf: [{maximum: 5}, {minimum: 9}]}", "{type: integer, anyOf: [{maximum: 5}]}"},
		{"a long anyOf", "{type: string}", "{type: string, anyOf: [{enum: [" + long + "]}, {enum: [" + long + "q]}]}", "{type: string, anyOf: [{enum: [" + long + "]}, {enum: [" + long + "r]}]}"},
		{"anyOf of fields", fields("b: {type: string}, c: {type: integer}"), "{type: object, properties: {b: {type: string}, c: {type: integer}}, anyOf: [{properties: {b: {enum: [p]}}}]}", "{type: object, properties: {b: {type: string}, c: {type: integer}}, anyOf: [{properties: {b: {enum: [q]}}}]}"},
		{"oneOf", "{type: integer}", "{type: integer, oneOf: [{maximum: 5}]}", "{type: integer, oneOf: [{maximum: 4}]}"},
		{"not", "{type: integer}", "{type: integer, not: {enum: [5]}}", "{type: integer, not: {enum: [5, 6]}}"},
		{"another not", "{type: integer, not: {enum: [1]}}", "{type: integer, not: {enum: [1, 2]}}", "{type: integer, not: {enum: [1, 2, 3]}}"},
		{"a rule", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self < 9}]}", "{type: integer, x-kubernetes-validations: [{rule: self < 8}]}"},
		{"optionalOldSelf", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self < 9 || oldSelf == oldSelf}]}", "{type: integer, x-kubernetes-validations: [{rule: self < 9 || oldSelf == oldSelf, optionalOldSelf: true}]}"},
		{"list map keys", "{type: array, items: {type: object, required: [k, j], properties: {k: {type: string}, j: {type: string}}}}", listMap("[k, j]"), listMap("[k]")},
		{"a default", fields("b: {type: string}"), fields("b: {type: string, default: x}"), fields("b: {type: string, default: z}")},
		{"another default", fields("b: {type: string, default: " + long + "}"), fields("b: {type: string, default: " + long + "q}"), fields("b: {type: string, default: " + long + "r}")},
		{"no default of what is required", "{type: object, required: [b], properties: {b: {type: string, default: x}}}", fields("b: {type: string}"), "{type: object, required: [b], properties: {b: {type: string}}}"},
		{"unknown fields", "{type: object, " + preserve + "}", fields("b: {" + preserve + "}, c: {" + preserve + "}"), fields("b: {" + preserve + "}")},
		{"the keys of a map", "{type: object, additionalProperties: {type: string}}", fields("b: {type: string}, c: {type: string}"), fields("b: {type: string}")},
		{"a type", "{type: string}", "{type: integer}", "{type: boolean}"},
		{"a type that is nullable", fields("b: {type: string, nullable: true}"), fields("b: {type: integer, nullable: true}"), fields("b: {type: integer}")},
		{"integers of numbers", "{type: number}", "{type: integer}", "{type: integer, maximum: 5}"},
		{"integers of integers or strings", "{x-kubernetes-int-or-string: true}", "{type: integer}", "{type: integer, maximum: 5}"},
		{"numbers of integers or strings", "{x-kubernetes-int-or-string: true}", "{type: number}", "{type: number, maximum: 5}"},
		{"integers or strings of numbers", "{type: number}", "{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, maximum: 5}"},
		{"strings of integers or strings", "{x-kubernetes-int-or-string: true}", "{type: string}", "{type: string, pattern: '^a'}"},
		{"strings of anything", "{" + preserve + "}", "{type: string}", "{type: string, minLength: 5}"},
		{"integers or strings of anything", "{" + preserve + "}", "{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, minimum: 5}"},
		{"lists of anything", "{" + preserve + "}", "{type: array, items: {type: string}}", "{type: array, items: {type: string, minLength: 5}}"},
		{"objects of anything", "{" + preserve + "}", "{type: object, properties: {b: {type: string}}}", "{type: object}"},
		{"objects of anything with fields", "{" + preserve + ", properties: {b: {type: string}}}", fields("b: {type: string}, c: {type: string}"), fields("b: {type: string}")},
		{"items of lists", "{type: array, items: {x-kubernetes-int-or-string: true}}", "{type: array, items: {type: integer}}", "{type: array, items: {type: integer}, x-kubernetes-list-type: set}"},
		{"an embedded resource", "{type: object, " + preserve + "}", "{type: object, " + preserve + ", x-kubernetes-embedded-resource: true}", "{type: object, " + preserve + ", x-kubernetes-embedded-resource: true, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			old := property(test.old)
			identified(t, changes(t, old, property(test.one)), changes(t, old, property(test.other)))
		})
	}
}

// identified checks that one of the other changes is not among some.
func identified(t *testing.T, some, other []breaking.Change) {
	t.Helper()
	if len(some) == 0 || len(other) == 0 {
		t.Fatalf("want changes, got %v and %v", some, other)
	}
	var is []string
	for _, c := range some {
		is = append(is, c.Version+" "+c.Path+": "+c.What)
	}
	for _, c := range other {
		if len(c.What) > 500 {
			t.Errorf("%d bytes: %s", len(c.What), c.What)
		}
		if !slices.Contains(is, c.Version+" "+c.Path+": "+c.What) {
			return
		}
	}
	t.Errorf("the other changes are accepted, too: %q", is)
}

// The same holds outside of schemas.
func TestWhat_IdentifiesTheDefinition(t *testing.T) {
	const old = apples + `  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}}}, status: {type: object, properties: {a: {type: integer}, l: {type: string}}}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a, labelSelectorPath: .status.l}}
    additionalPrinterColumns: [{name: A, type: integer, jsonPath: .spec.a}]
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: integer}, l: {type: string}}}}}}}
  - {name: v3, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: integer}, l: {type: string}}}}}}}
`
	for _, test := range []struct {
		name       string
		one, other []string // what to replace in the old definition
	}{
		{"a name", []string{"kind: Apple", "kind: Pear, listKind: AppleList, singular: apple"}, []string{"kind: Apple", "kind: Plum, listKind: AppleList, singular: apple"}},
		{"a column", []string{"jsonPath: .spec.a", "jsonPath: .spec.b"}, []string{"jsonPath: .spec.a", "jsonPath: .spec.c"}},
		{"the type of a column", []string{"name: A, type: integer", "name: A, type: string"}, []string{"name: A, type: integer", "name: A, type: date"}},
		{"a scale path", []string{"labelSelectorPath: .status.l", "labelSelectorPath: .status.b"}, []string{"labelSelectorPath: .status.l", "labelSelectorPath: .status.c"}},
		{"no scale path", []string{"Path: .spec.a", "Path: .spec.b"}, []string{"Path: .spec.a", "Path: .spec.b", ", labelSelectorPath: .status.l", ""}},
		{"the storage version", []string{"storage: true", "storage: false", "v2, served: true, storage: false", "v2, served: true, storage: true"},
			[]string{"storage: true", "storage: false", "v3, served: true, storage: false", "v3, served: true, storage: true"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			identified(t, changes(t, old, strings.NewReplacer(test.one...).Replace(old)), changes(t, old, strings.NewReplacer(test.other...).Replace(old)))
		})
	}
}

// People read values, not escapes, and the end of a cut text is not half of a character.
func TestWhat_IsReadable(t *testing.T) {
	for _, test := range []struct{ old, now, want string }{
		{"{type: string}", "{type: string, enum: ['<a>', '&']}", `only "&", "<a>" are allowed now`},
		{"{type: string}", "{type: string, not: {pattern: '^<a>$'}}", `not is {"pattern":"^<a>$"} now`},
		{"{type: string}", "{type: string, enum: [" + strings.Repeat("é", 100) + "]}", `only "` + strings.Repeat("é", 59) + `... (sha256:`},
	} {
		if got := changes(t, property(test.old), property(test.now)); len(got) != 1 || !strings.HasPrefix(got[0].What, test.want) {
			t.Errorf("%s: got %v, want %s", test.now, got, test.want)
		}
	}
}

// The order of what has none is not a change, nor is documentation.
func TestWhat_SameChange(t *testing.T) {
	const preserve = "{x-kubernetes-preserve-unknown-fields: true}"
	for _, test := range []struct{ name, old, one, other string }{
		{"an enum", "{type: string}", "{type: string, enum: [p, q]}", "{type: string, enum: [q, p]}"},
		{"anyOf", "{type: integer}", "{type: integer, anyOf: [{maximum: 5}, {minimum: 9}]}", "{type: integer, anyOf: [{minimum: 9}, {maximum: 5}]}"},
		{"descriptions", preserve, "{type: object, description: a, properties: {description: {type: string, description: a}}}", "{type: object, description: b, properties: {description: {type: string, description: b}}}"},
		{"messages", preserve, "{type: object, x-kubernetes-validations: [{rule: 'true', message: a}]}", "{type: object, x-kubernetes-validations: [{rule: 'true', message: b}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, other := changes(t, property(test.old), property(test.one)), changes(t, property(test.old), property(test.other))
			if len(one) != 1 || len(other) != 1 || one[0].What != other[0].What {
				t.Errorf("got %v and %v, want the same change", one, other)
			}
		})
	}
}

package breaking_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/breaking"
	"github.com/crdkit/crdkit/test/expect"
)

// breaks returns what breaks between two definitions, and how each is proven.
func breaks(t testing.TB, old, new string) (all []string) {
	t.Helper()
	for _, c := range changes(t, old, new) {
		all = append(all, told(c))
	}
	return all
}

// pears returns the text of a definition as one of another kind.
func pears(text string) string {
	return strings.NewReplacer("apples", "pears", "Apple", "Pear").Replace(text)
}

func release(definitions ...*schema.Definition) schema.Release {
	return schema.Release{Definitions: definitions}
}

// changes returns what breaks between two definitions. Each proof is confirmed.
func changes(t testing.TB, old, new string, samples ...map[string]any) []breaking.Change {
	t.Helper()
	before, after := definition(t, old), definition(t, new)
	all, err := breaking.Changes(t.Context(), release(before), release(after), breaking.Samples(samples...))
	expect.NoError(t, err)
	for _, c := range all {
		confirm(t, before, after, c)
	}
	return all
}

// told is a change and its proof in one line.
func told(c breaking.Change) string {
	s := c.Path + ": " + c.What
	if c.Version != "" {
		s = c.Version + " " + s
	}
	switch {
	case c.Unproven:
		s += " UNPROVEN"
	case c.Proof != nil:
		if c.Proof.Stored != nil {
			s += " " + short(c.Proof.Stored) + " replaced by"
		}
		if c.Proof.Subresource != "" {
			s += " " + c.Proof.Subresource + " of"
		}
		s += " " + short(c.Proof.Object)
		for _, err := range c.Proof.Errors {
			if !strings.Contains(err.Detail, "some validation rules were not checked") {
				s += " => " + err.Error()
			}
		}
		for _, a := range c.Proof.Altered {
			s += " -> " + a
		}
	}
	return s
}

// short is an object without what says which one it is.
func short(object []byte) string {
	_, rest, ok := strings.Cut(string(object), `"metadata":`)
	if !ok {
		return string(object)
	}
	_, rest, _ = strings.Cut(rest, `}`)
	return "{" + strings.TrimPrefix(rest, ",")
}

// Each breaking change of a schema is proven.
func TestChanges_EachIsProven(t *testing.T) {
	for _, test := range []struct {
		name, old, new string // of a property
		want           []string
	}{
		{"a field removed", "{type: object, properties: {b: {type: string}, c: {type: string}}}", "{type: object, properties: {c: {type: string}}}", []string{`v1 spec.a.b: the field is removed {"spec":{"a":{"b":""}}} -> spec.a.b: removed, was ""`}},
		{"a field in a list removed", "{type: array, items: {type: object, properties: {b: {type: integer}}}}", "{type: array, items: {type: object}}", []string{`v1 spec.a[].b: the field is removed {"spec":{"a":[{"b":0}]}} -> spec.a[0].b: removed, was 0`}},
		{"a field in a map removed", "{type: object, additionalProperties: {type: object, properties: {b: {type: integer}}}}", "{type: object, additionalProperties: {type: object}}", []string{`v1 spec.a[*].b: the field is removed {"spec":{"a":{"x":{"b":0}}}} -> spec.a.x.b: removed, was 0`}},
		{"another type", "{type: string}", "{type: integer}", []string{`v1 spec.a: the type string is now integer {"spec":{"a":""}} => spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"`}},
		{"a narrower type", "{x-kubernetes-int-or-string: true}", "{type: string}", []string{`v1 spec.a: the type integer or string is now string {"spec":{"a":0}} => spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"`}},
		{"a narrower number", "{type: number}", "{type: integer}", []string{`v1 spec.a: the type number is now integer {"spec":{"a":0.5}} => spec.a: Invalid value: "number": spec.a in body must be of type integer: "number" => <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.a`}},
		{"a field required", "{type: object, properties: {b: {type: string}}}", "{type: object, required: [b], properties: {b: {type: string}}}", []string{`v1 spec.a.b: it is now required {"spec":{"a":{}}} => spec.a.b: Required value`}},
		{"a new field required", "{type: object}", "{type: object, required: [b], properties: {b: {type: string}}}", []string{`v1 spec.a.b: it is now required {"spec":{"a":{}}} => spec.a.b: Required value`}},
		{"an enum value removed", "{type: string, enum: [p, q, r]}", "{type: string, enum: [p, r]}", []string{`v1 spec.a: the value "q" is removed {"spec":{"a":"q"}} => spec.a: Unsupported value: "q": supported values: "p", "r"`}},
		{"an enum", "{type: string}", "{type: string, enum: [x]}", []string{`v1 spec.a: only "x" is allowed now {"spec":{"a":""}} => spec.a: Unsupported value: "": supported values: "x"`}},
		{"maximum", "{type: integer, maximum: 10}", "{type: integer, maximum: 5}", []string{`v1 spec.a: maximum 10 is now 5 {"spec":{"a":6}} => spec.a: Invalid value: 6: spec.a in body should be less than or equal to 5`}},
		{"maximum that is new", "{type: integer}", "{type: integer, maximum: 5}", []string{`v1 spec.a: maximum is 5 now {"spec":{"a":6}} => spec.a: Invalid value: 6: spec.a in body should be less than or equal to 5`}},
		{"exclusive maximum", "{type: integer, maximum: 5}", "{type: integer, maximum: 5, exclusiveMaximum: true}", []string{`v1 spec.a: maximum 5 is now 5 (exclusive) {"spec":{"a":5}} => spec.a: Invalid value: 5: spec.a in body should be less than 5`}},
		{"minimum", "{type: number}", "{type: number, minimum: 0.5}", []string{`v1 spec.a: minimum is 0.5 now {"spec":{"a":-1}} => spec.a: Invalid value: -1: spec.a in body should be greater than or equal to 0`}},
		{"maxLength", "{type: string}", "{type: string, maxLength: 2}", []string{`v1 spec.a: maxLength is 2 now {"spec":{"a":"aaa"}} => spec.a: Too long: may not be more than 2 bytes`}},
		{"minLength", "{type: string}", "{type: string, minLength: 1}", []string{`v1 spec.a: minLength is 1 now {"spec":{"a":""}} => spec.a: Invalid value: "": spec.a in body should be at least 1 chars long`}},
		{"maxItems", "{type: array, items: {type: string}}", "{type: array, maxItems: 1, items: {type: string}}", []string{`v1 spec.a: maxItems is 1 now {"spec":{"a":["",""]}} => spec.a: Too many: 2: must have at most 1 item`}},
		{"minItems", "{type: array, items: {type: string}}", "{type: array, minItems: 1, items: {type: string}}", []string{`v1 spec.a: minItems is 1 now {"spec":{"a":[]}} => spec.a: Invalid value: 0: spec.a in body should have at least 1 items`}},
		{"maxProperties", "{type: object, additionalProperties: {type: string}}", "{type: object, maxProperties: 1, additionalProperties: {type: string}}", []string{`v1 spec.a: maxProperties is 1 now {"spec":{"a":{"x":"","xb":""}}} => spec.a: Too many: 2: must have at most 1 item`}},
		{"minProperties", "{type: object, additionalProperties: {type: string}}", "{type: object, minProperties: 1, additionalProperties: {type: string}}", []string{`v1 spec.a: minProperties is 1 now {"spec":{"a":{}}} => spec.a: Invalid value: 0: spec.a in body should have at least 1 properties`}},
		{"multipleOf", "{type: integer}", "{type: integer, multipleOf: 3}", []string{`v1 spec.a: multipleOf is 3 now {"spec":{"a":1}} => spec.a: Invalid value: 1: spec.a in body should be a multiple of 3`}},
		{"a pattern", "{type: string}", "{type: string, pattern: '^a+$'}", []string{`v1 spec.a: it has the pattern ^a+$ now {"spec":{"a":""}} => spec.a: Invalid value: "": spec.a in body should match '^a+$'`}},
		{"another pattern", "{type: string, pattern: '^[ab]$'}", "{type: string, pattern: '^[a]$'}", []string{`v1 spec.a: the pattern ^[ab]$ is now ^[a]$ {"spec":{"a":"b"}} => spec.a: Invalid value: "b": spec.a in body should match '^[a]$'`}},
		{"a format", "{type: string}", "{type: string, format: date-time}", []string{`v1 spec.a: it has the format date-time now {"spec":{"a":""}} => spec.a: Invalid value: "": spec.a in body must be of type date-time: ""`}},
		{"a narrower format", "{type: integer, format: int64}", "{type: integer, format: int32}", []string{`v1 spec.a: the format int64 is now int32 {"spec":{"a":2147483648}} => <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.a`}},
		{"no null", "{type: object, properties: {b: {type: string, nullable: true}}}", "{type: object, properties: {b: {type: string}}}", []string{`v1 spec.a.b: it is no longer nullable {"spec":{"a":{"b":null}}} -> spec.a.b: removed, was null`}},
		{"no null in a list", "{type: array, items: {type: string, nullable: true}}", "{type: array, items: {type: string}}", []string{`v1 spec.a[]: it is no longer nullable {"spec":{"a":[null]}} => spec.a[0]: Invalid value: "null": spec.a[0] in body must be of type string: "null"`}},
		{"null", "{type: object, properties: {b: {type: string}}}", "{type: object, properties: {b: {type: string, nullable: true}}}", []string{`v1 spec.a.b: it is nullable now {"spec":{"a":{"b":null}}} -> spec.a.b: null, was not there`}},
		{"null with an enum", "{type: object, properties: {b: {type: string, enum: [p]}}}", "{type: object, properties: {b: {type: string, nullable: true, enum: [p]}}}", []string{`v1 spec.a.b: it is nullable now {"spec":{"a":{"b":null}}} => spec.a.b: Unsupported value: null: supported values: "p"`}},
		{"null with a default", "{type: object, required: [b], properties: {b: {type: string, default: x}}}", "{type: object, required: [b], properties: {b: {type: string, nullable: true, default: x}}}", []string{`v1 spec.a.b: it is nullable now {"spec":{"a":{"b":null}}} -> spec.a.b: null, was "x"`}},
		{"null in a map", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, nullable: true}}", []string{`v1 spec.a[*]: it is nullable now {"spec":{"a":{"x":null}}} -> spec.a.x: null, was not there`}},
		{"a bound beside a format that is ignored", "{type: string, enum: [a, bc], allOf: [{format: nonsense}]}", "{type: string, enum: [a, bc], maxLength: 1, allOf: [{format: nonsense}]}", []string{`v1 spec.a: maxLength is 1 now {"spec":{"a":"bc"}} => spec.a: Too long: may not be more than 1 byte`}},
		{"another default of items", "{type: array, items: {type: string, default: x}}", "{type: array, items: {type: string, default: z}}", []string{`v1 spec.a[]: the default "x" is now "z" {"spec":{"a":[null]}} -> spec.a[0]: "z", was "x"`}},
		{"no default of items", "{type: array, items: {type: string, default: x}}", "{type: array, items: {type: string}}", []string{`v1 spec.a[]: the default "x" is removed {"spec":{"a":[null]}} => spec.a[0]: Invalid value: "null": spec.a[0] in body must be of type string: "null"`}},
		{"null in a list with a default", "{type: array, items: {type: string, default: x}}", "{type: array, items: {type: string, nullable: true, default: x}}", []string{`v1 spec.a[]: it is nullable now {"spec":{"a":[null]}} -> spec.a[0]: null, was "x"`}},
		{"a default of values", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, default: x}}", []string{`v1 spec.a[*]: it has the default "x" now {"spec":{"a":{"x":null}}} -> spec.a.x: "x", was not there`}},
		{"a default of a field that counts", "{type: object, maxProperties: 1, properties: {b: {type: string}}}", "{type: object, maxProperties: 1, properties: {b: {type: string}, c: {type: string, default: x}}}", []string{`v1 spec.a: the new field c has a default {"spec":{"a":{"b":""}}} => spec.a: Too many: 2: must have at most 1 item`}},
		{"a set of wider items", "{type: array, items: {type: integer}}", "{type: array, items: {x-kubernetes-int-or-string: true}, x-kubernetes-list-type: set}", []string{`v1 spec.a: the list type atomic is now set {"spec":{"a":[0,0]}} => spec.a[1]: Duplicate value: 0`}},
		{"a default", "{type: object, properties: {b: {type: string}}}", "{type: object, properties: {b: {type: string, default: x}}}", []string{`v1 spec.a.b: it has the default "x" now {"spec":{"a":{}}} -> spec.a.b: "x", was not there`}},
		{"another default", "{type: object, properties: {b: {type: string, default: x}}}", "{type: object, properties: {b: {type: string, default: z}}}", []string{`v1 spec.a.b: the default "x" is now "z" {"spec":{"a":{}}} -> spec.a.b: "z", was "x"`}},
		{"no default", "{type: object, properties: {b: {type: string, default: x}}}", "{type: object, properties: {b: {type: string}}}", []string{`v1 spec.a.b: the default "x" is removed {"spec":{"a":{}}} -> spec.a.b: removed, was "x"`}},
		{"no default of what is required", "{type: object, required: [b], properties: {b: {type: string, default: x}}}", "{type: object, required: [b], properties: {b: {type: string}}}", []string{`v1 spec.a.b: the default "x" of the required field is removed {"spec":{"a":{}}} => spec.a.b: Required value`}},
		{"a set", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", []string{`v1 spec.a: the list type atomic is now set {"spec":{"a":["",""]}} => spec.a[1]: Duplicate value: ""`}},
		{"a list map", "{type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}", "{type: array, items: {type: object, required: [k], properties: {k: {type: string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}", []string{`v1 spec.a: the list type atomic is now map by k {"spec":{"a":[{"k":""},{"k":""}]}} => spec.a[1]: Duplicate value: {"k":""}`}},
		{"no set", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}}", []string{`v1 spec.a: the list type set is now atomic`}},
		{"an atomic map", "{type: object}", "{type: object, x-kubernetes-map-type: atomic}", []string{`v1 spec.a: the map type granular is now atomic`}},
		{"pruning", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", []string{`v1 spec.a: unknown fields are no longer preserved {"spec":{"a":{"unknown":""}}} -> spec.a.unknown: removed, was ""`}},
		{"no map", "{type: object, additionalProperties: {type: string}}", "{type: object, properties: {b: {type: string}}}", []string{`v1 spec.a: it is no longer a map, and has the fields b {"spec":{"a":{"x":""}}} -> spec.a.x: removed, was ""`}},
		{"a schema for values", "{type: object, additionalProperties: true}", "{type: object, additionalProperties: {type: string}}", []string{`v1 spec.a[*]: the type is string now {"spec":{"a":{"x":0}}} => spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer"`}},
		{"no schema for values", "{type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}", "{type: object, additionalProperties: true}", []string{`v1 spec.a[*].b: the field is removed {"spec":{"a":{"x":{"b":""}}}} -> spec.a.x.b: removed, was ""`}},
		{"a rule", "{type: object, properties: {b: {type: integer}, c: {type: integer}}}", "{type: object, properties: {b: {type: integer}, c: {type: integer}}, x-kubernetes-validations: [{rule: 'self.b <= self.c', message: b is too large}]}", []string{`v1 spec.a: there is a new rule: self.b <= self.c {"spec":{"a":{}}} => spec.a: Invalid value: "object": no such key: b evaluating rule: b is too large`}},
		{"a rule about strings", "{type: string}", "{type: string, maxLength: 100, x-kubernetes-validations: [{rule: \"self.startsWith('x')\"}]}", []string{`v1 spec.a: maxLength is 100 now {"spec":{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}} => spec.a: Too long: may not be more than 100 bytes`, `v1 spec.a: there is a new rule: self.startsWith('x') {"spec":{"a":""}} => spec.a: Invalid value: "": failed rule: self.startsWith('x')`}},
		{"a large bound", "{type: integer, maximum: 5000000}", "{type: integer, maximum: 4000000}", []string{`v1 spec.a: maximum 5000000 is now 4000000 {"spec":{"a":4000001}} => spec.a: Invalid value: 4000001: spec.a in body should be less than or equal to 4000000`}},
		{"a field specified below preserve-unknown-fields", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, required: [x], properties: {x: {type: integer}}}", []string{
			`v1 spec.a.x: it is now required {"spec":{"a":{}}} => spec.a.x: Required value`,
			`v1 spec.a.x: the type is integer now {"spec":{"a":{"x":""}}} => spec.a.x: Invalid value: "string": spec.a.x in body must be of type integer: "string"`}},
		{"a field specified where anything was", "{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: string}}}", []string{`v1 spec.a.x: the type is string now {"spec":{"a":{"x":0}}} => spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer"`}},
		{"a field specified that prunes", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {nullable: true, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: object}}}}}", []string{`v1 spec.a.x.b: the type is object now {"spec":{"a":{"x":{"b":""}}}} => spec.a.x.b: Invalid value: "string": spec.a.x.b in body must be of type object: "string"`}},
		{"an integer or a string where anything was", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {x-kubernetes-int-or-string: true}}}", []string{`v1 spec.a.x: the type is integer or string now {"spec":{"a":{"x":false}}} => spec.a.x: Invalid value: "boolean": spec.a.x in body must be of type integer,string: "boolean"`}},
		{"an object where anything was", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: object, required: [c], properties: {c: {type: string}}}}}", []string{`v1 spec.a.x: the type is object now, with {"required":["c"],"properties":{"c":{"type":"string"}}} {"spec":{"a":{"x":""}}} => spec.a.x: Invalid value: "string": spec.a.x in body must be of type object: "string"`}},
		{"the root where anything was", "{type: object, x-kubernetes-preserve-unknown-fields: true, required: [b], properties: {b: {type: string, maxLength: 9}}}", "{type: object, required: [b], properties: {b: {type: string, maxLength: 3}}}", []string{
			`v1 spec.a: unknown fields are no longer preserved {"spec":{"a":{"b":"","unknown":""}}} -> spec.a.unknown: removed, was ""`,
			`v1 spec.a.b: maxLength 9 is now 3 {"spec":{"a":{"b":"aaaa"}}} => spec.a.b: Too long: may not be more than 3 bytes`}},
		{"a default below preserve-unknown-fields", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: string, default: d}}}", []string{
			`v1 spec.a.x: it has the default "d" now {"spec":{"a":{}}} -> spec.a.x: "d", was not there`,
			`v1 spec.a.x: the type is string now {"spec":{"a":{"x":0}}} => spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer"`}},
		{"a field named beside a map", "{type: object, additionalProperties: {type: string}}", "{type: object, properties: {zz: {type: integer}}}", []string{
			`v1 spec.a: it is no longer a map, and has the fields zz {"spec":{"a":{"x":""}}} -> spec.a.x: removed, was ""`,
			`v1 spec.a.zz: the type string is now integer {"spec":{"a":{"zz":""}}} => spec.a.zz: Invalid value: "string": spec.a.zz in body must be of type integer: "string"`}},
		{"another schema of values, with preserve-unknown-fields", "{type: object, additionalProperties: {type: integer}}", "{type: object, x-kubernetes-preserve-unknown-fields: true, additionalProperties: {type: string}}", []string{`v1 spec.a[*]: the type integer is now string {"spec":{"a":{"x":0}}} => spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer"`}},
		{"more list keys", listMap("[k]"), listMap("[k, j]"), []string{`v1 spec.a: the keys k are now k, j`}},
		{"fewer list keys", listMap("[k, j]"), listMap("[k]"), []string{`v1 spec.a: the keys k, j are now k {"spec":{"a":[{"j":"x","k":""},{"j":"","k":""}]}} => spec.a[1]: Duplicate value: {"k":""}`}},
		{"a rule that is for updates", "{type: string, maxLength: 9}", "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: self == oldSelf}]}", []string{`v1 spec.a: there is a new rule: self == oldSelf {"spec":{"a":""}} replaced by {"spec":{"a":"x"}} => spec.a: Invalid value: "x": failed rule: self == oldSelf`}},
		{"a rule that is for updates, too", "{type: string, maxLength: 9}", "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: \"!oldSelf.hasValue() || self == oldSelf.value()\", optionalOldSelf: true}]}", []string{`v1 spec.a: there is a new rule with optionalOldSelf: !oldSelf.hasValue() || self == oldSelf.value() {"spec":{"a":""}} replaced by {"spec":{"a":"x"}} => spec.a: Invalid value: "x": failed rule: !oldSelf.hasValue() || self == oldSelf.value()`}},
		{"a composition", "{type: object, properties: {b: {type: string}, c: {type: string}}}", "{type: object, properties: {b: {type: string}, c: {type: string}}, oneOf: [{required: [b]}, {required: [c]}]}", []string{`v1 spec.a: oneOf is {"required":["b"]}, {"required":["c"]} now {"spec":{"a":{}}} => <nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found none valid`}},
		{"a negation", "{type: string, enum: [p, q]}", "{type: string, enum: [p, q], not: {enum: [p]}}", []string{`v1 spec.a: not is {"enum":["p"]} now {"spec":{"a":"p"}} => <nil>: Invalid value: "": "spec.a" must not validate the schema (not)`}},
		{"a default beside a field that is required now", "{type: object, properties: {b: {type: string}, c: {type: string}}}", "{type: object, required: [c], properties: {b: {type: string, default: x}, c: {type: string}}}", []string{
			`v1 spec.a.b: it has the default "x" now {"spec":{"a":{"c":""}}} -> spec.a.b: "x", was not there`,
			`v1 spec.a.c: it is now required {"spec":{"a":{}}} => spec.a.c: Required value`}},
		{"a rule about keys", "{type: object, maxProperties: 9, additionalProperties: {type: string}}", "{type: object, maxProperties: 9, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: 'self.all(k, size(k) <= 9)'}]}", []string{`v1 spec.a: there is a new rule: self.all(k, size(k) <= 9) {"spec":{"a":{"xxxxxxxxxx":""}}} => spec.a: Invalid value: failed rule: self.all(k, size(k) <= 9)`}},
		{"a rule about patterns of keys", "{type: object, maxProperties: 9, additionalProperties: {type: string}}", "{type: object, maxProperties: 9, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: \"self.all(k, k.matches('^[a-z]+$'))\"}]}", []string{`v1 spec.a: there is a new rule: self.all(k, k.matches('^[a-z]+$')) {"spec":{"a":{"^[a-z]+$":""}}} => spec.a: Invalid value: failed rule: self.all(k, k.matches('^[a-z]+$'))`}},
		{"a value that is not allowed", "{type: string}", "{type: string, not: {enum: [default]}}", []string{`v1 spec.a: not is {"enum":["default"]} now {"spec":{"a":"default"}} => <nil>: Invalid value: "": "spec.a" must not validate the schema (not)`}},
		{"fields that exclude each other", "{type: object, properties: {b: {type: string}, c: {type: string}}}", "{type: object, properties: {b: {type: string}, c: {type: string}}, not: {required: [b, c]}}", []string{`v1 spec.a: not is {"required":["b","c"]} now {"spec":{"a":{"b":"","c":""}}} => <nil>: Invalid value: "": "spec.a" must not validate the schema (not)`}},
		{"a bound in allOf", "{type: array, items: {type: integer}}", "{type: array, items: {type: integer}, allOf: [{items: {maximum: 5}}]}", []string{`v1 spec.a: allOf has {"items":{"maximum":5}} now {"spec":{"a":[6]}} => <nil>: Invalid value: "": "spec.a" must validate all the schemas (allOf). None validated`}},
		{"one way less", "{type: string, anyOf: [{pattern: ^a}, {pattern: ^b}]}", "{type: string, anyOf: [{pattern: ^a}]}", []string{`v1 spec.a: anyOf {"pattern":"^a"}, {"pattern":"^b"} is now {"pattern":"^a"} {"spec":{"a":"b"}} => <nil>: Invalid value: "": "spec.a" must validate at least one schema (anyOf)`}},
		{"a rule about durations", "{type: string, maxLength: 9, format: duration}", "{type: string, maxLength: 9, format: duration, x-kubernetes-validations: [{rule: \"duration(self) <= duration('1h')\"}]}", []string{`v1 spec.a: there is a new rule: duration(self) <= duration('1h') {"spec":{"a":"2h"}} => spec.a: Invalid value: "2h": failed rule: duration(self) <= duration('1h')`}},
		{"a rule beside another change", "{type: object, properties: {b: {type: string, maxLength: 9, default: x}}}", "{type: object, properties: {b: {type: string, maxLength: 9, default: z}}, x-kubernetes-validations: [{rule: self.b == oldSelf.b}]}", []string{
			`v1 spec.a: there is a new rule: self.b == oldSelf.b {"spec":{"a":{}}} replaced by {"spec":{"a":{}}} => spec.a: Invalid value: failed rule: self.b == oldSelf.b`,
			`v1 spec.a.b: the default "x" is now "z" {"spec":{"a":{}}} -> spec.a.b: "z", was "x"`}},
		{"a rule about what may be absent", "{type: object, properties: {p: {type: object, required: [b], properties: {b: {type: string, enum: [v, w]}}}}}", "{type: object, properties: {p: {type: object, required: [b], properties: {b: {type: string, enum: [v, w, x]}, c: {type: integer}}}}, x-kubernetes-validations: [{rule: '!has(self.p.c) || self.p.c > 3'}, {rule: \"has(self.p.b) && self.p.b != 'x'\"}]}", []string{
			`v1 spec.a: there is a new rule: !has(self.p.c) || self.p.c > 3 {"spec":{"a":{}}} => spec.a: Invalid value: "object": no such key: p evaluating rule: !has(self.p.c) || self.p.c > 3`,
			`v1 spec.a: there is a new rule: has(self.p.b) && self.p.b != 'x' {"spec":{"a":{}}} => spec.a: Invalid value: "object": no such key: p evaluating rule: has(self.p.b) && self.p.b != 'x'`}},
		{"a rule with two messages", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self < 1, message: too large, messageExpression: \"'it is too large'\"}]}", []string{`v1 spec.a: there is a new rule: self < 1 {"spec":{"a":1}} => spec.a: Invalid value: 1: it is too large`}},
		{"a rule with a number", "{type: integer, x-kubernetes-validations: [{rule: self <= 100}]}", "{type: integer, x-kubernetes-validations: [{rule: self <= 80}]}", []string{`v1 spec.a: there is a new rule: self <= 80 {"spec":{"a":81}} => spec.a: Invalid value: 81: failed rule: self <= 80`}},
		{"a rule with a length", "{type: string, maxLength: 9}", "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: size(self) <= 5}]}", []string{`v1 spec.a: there is a new rule: size(self) <= 5 {"spec":{"a":"xxxxxx"}} => spec.a: Invalid value: "xxxxxx": failed rule: size(self) <= 5`}},
		{"a rule with a number of items", "{type: array, maxItems: 9, items: {type: integer}}", "{type: array, maxItems: 9, items: {type: integer}, x-kubernetes-validations: [{rule: size(self) <= 5}]}", []string{`v1 spec.a: there is a new rule: size(self) <= 5 {"spec":{"a":[0,0,0,0,0,0]}} => spec.a: Invalid value: failed rule: size(self) <= 5`}},
		{"a pattern of an integer or a string", "{x-kubernetes-int-or-string: true, pattern: '^[0-9]+%?$'}", "{x-kubernetes-int-or-string: true, pattern: '^[0-9]+%$'}", []string{`v1 spec.a: the pattern ^[0-9]+%?$ is now ^[0-9]+%$ {"spec":{"a":"0"}} => spec.a: Invalid value: "0": spec.a in body should match '^[0-9]+%$'`}},
		{"an embedded resource", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}", []string{`v1 spec.a: it is now an embedded resource {"spec":{"a":{}}} => spec.a.apiVersion: Required value => spec.a.kind: Required value`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := breaks(t, property(test.old), property(test.new))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// listMap is a list of the items that are known by some of their fields.
func listMap(keys string) string {
	return "{type: array, items: {type: object, required: [k, j], properties: {k: {type: string}, j: {type: string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: " + keys + "}"
}

// apples is a small definition, as far as to its versions.
const apples = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apples.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: apples, kind: Apple}
  versions:
`

// withSchema returns a small definition with a schema.
func withSchema(s string) string {
	return apples + `  - {name: v1, served: true, storage: true,
     schema: {openAPIV3Schema: ` + s + `}}
`
}

// property returns a definition with a schema for spec.a.
func property(s string) string {
	return withSchema("{type: object, properties: {spec: {type: object, properties: {\na: " + s + "}}}}")
}

// A wider schema breaks nothing.
func TestChanges_Wider(t *testing.T) {
	for name, test := range map[string][2]string{
		"the same":                          {"{type: string}", "{type: string}"},
		"another description":               {"{type: string}", "{type: string, description: hello, title: hello}"},
		"a new field":                       {"{type: object}", "{type: object, properties: {b: {type: string}}}"},
		"a new field with a default":        {"{type: object}", "{type: object, properties: {b: {type: string, default: x}}}"},
		"a new field, required within":      {"{type: object}", "{type: object, properties: {b: {type: object, required: [c], properties: {c: {type: string}}}}}"},
		"required with a default":           {"{type: object, properties: {b: {type: string, default: x}}}", "{type: object, required: [b], properties: {b: {type: string, default: x}}}"},
		"no longer required":                {"{type: object, required: [b], properties: {b: {type: string}}}", "{type: object, properties: {b: {type: string}}}"},
		"a value more":                      {"{type: string, enum: [p]}", "{type: string, enum: [p, q]}"},
		"no enum":                           {"{type: string, enum: [p]}", "{type: string}"},
		"wider bounds":                      {"{type: integer, minimum: 1, maximum: 2}", "{type: integer, minimum: 0, maximum: 3}"},
		"inclusive bounds":                  {"{type: integer, maximum: 3, exclusiveMaximum: true}", "{type: integer, maximum: 3}"},
		"longer":                            {"{type: string, minLength: 1, maxLength: 2}", "{type: string, maxLength: 3}"},
		"more":                              {"{type: array, minItems: 1, maxItems: 2, items: {type: string}}", "{type: array, maxItems: 3, items: {type: string}}"},
		"multiples of less":                 {"{type: integer, multipleOf: 6}", "{type: integer, multipleOf: 3}"},
		"no pattern":                        {"{type: string, pattern: a}", "{type: string}"},
		"no format":                         {"{type: string, format: date}", "{type: string}"},
		"a format nobody checks":            {"{type: string}", "{type: string, format: hello}"},
		"a format of all integers":          {"{type: integer, format: int32}", "{type: integer, format: int64}"},
		"null in a list":                    {"{type: array, items: {type: string}}", "{type: array, items: {type: string, nullable: true}}"},
		"null for a required field":         {"{type: object, required: [b], properties: {b: {type: string}}}", "{type: object, required: [b], properties: {b: {type: string, nullable: true}}}"},
		"numbers":                           {"{type: integer}", "{type: number}"},
		"integers or strings":               {"{type: string}", "{x-kubernetes-int-or-string: true}"},
		"anything":                          {"{type: object, properties: {b: {type: string}}}", "{x-kubernetes-preserve-unknown-fields: true}"},
		"unknown fields":                    {"{type: object, properties: {b: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}"},
		"a map":                             {"{type: object, properties: {b: {type: string}}}", "{type: object, additionalProperties: {type: string}}"},
		"no rule":                           {"{type: string, maxLength: 3, x-kubernetes-validations: [{rule: self != 'x'}]}", "{type: string, maxLength: 3}"},
		"another message":                   {"{type: string, maxLength: 3, x-kubernetes-validations: [{rule: self != 'x'}]}", "{type: string, maxLength: 3, x-kubernetes-validations: [{rule: self != 'x', message: never}]}"},
		"anything in a map":                 {"{type: object, additionalProperties: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true}"},
		"anything in a map of maps":         {"{type: object, additionalProperties: {type: object, additionalProperties: true}}", "{type: object, additionalProperties: {type: object, x-kubernetes-preserve-unknown-fields: true}}"},
		"a default for what is there":       {"{type: object, required: [b], properties: {b: {type: string}}}", "{type: object, required: [b], properties: {b: {type: string, default: x}}}"},
		"a field beside fields":             {"{type: object, properties: {b: {type: string}}}", "{type: object, properties: {b: {type: string}, c: {type: integer}}}"},
		"one more way":                      {"{type: string, anyOf: [{enum: [p]}]}", "{type: string, anyOf: [{enum: [p]}, {enum: [q]}]}"},
		"an alternative of a new field":     {"{type: object, properties: {b: {type: string}}, oneOf: [{required: [b]}, {not: {required: [b]}}]}", "{type: object, properties: {b: {type: string}, c: {type: string}}, oneOf: [{required: [b]}, {not: {required: [b]}}, {required: [c]}]}"},
		"a new field that excludes others":  {"{type: object, properties: {b: {type: string}}}", "{type: object, properties: {b: {type: string}, c: {type: string}}, not: {anyOf: [{required: [b, c]}]}}"},
		"both types of integers or strings": {"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}"},
		"a bound of allOf":                  {"{type: string, allOf: [{maxLength: 9}, {maxLength: 5}]}", "{type: string, maxLength: 5}"},
		"the pattern of allOf":              {"{type: string, allOf: [{pattern: ^a}]}", "{type: string, pattern: ^a}"},
		"the enum of allOf":                 {"{type: string, allOf: [{enum: [p, q, r]}, {enum: [p, q]}]}", "{type: string, enum: [p, q]}"},
		"no composition":                    {"{type: string, not: {enum: [p]}, oneOf: [{enum: [q]}]}", "{type: string}"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := breaks(t, property(test[0]), property(test[1])); got != nil {
				t.Errorf("it breaks %s", strings.Join(got, "\n"))
			}
		})
	}
}

// Changes outside of schemas break clients too.
func TestChanges_OutsideSchemas(t *testing.T) {
	const old = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apples.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: apples, singular: apple, kind: Apple, shortNames: [ap], categories: [fruit]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string}}}, status: {type: object, properties: {size: {type: integer}}}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}, {name: Colour, type: string, jsonPath: .spec.colour}]
    selectableFields: [{jsonPath: .spec.colour}]
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(old) }
	for _, test := range []struct {
		name, new string
		want      []string
	}{
		{"nothing", old, nil},
		{"the group", replace("example.com", "example.org"), []string{"spec.group: example.com is now example.org"}},
		{"the plural", replace("apples", "appls"), []string{"spec.names.plural: apples is now appls"}},
		{"the kind", replace("kind: Apple,", "kind: Fruit, listKind: AppleList,"), []string{"spec.names.kind: Apple is now Fruit"}},
		{"the scope", replace("Namespaced", "Cluster"), []string{"spec.scope: Namespaced is now Cluster"}},
		{"other names", replace("singular: apple", "singular: fruit, listKind: Apples", "[ap]", "[a]", "[fruit]", "[]"), []string{
			"spec.names.listKind: AppleList is now Apples", "spec.names.singular: apple is now fruit", "spec.names.shortNames: ap is removed", "spec.names.categories: fruit is removed"}},
		{"a stored version", old[:strings.Index(old, "  - name: v1\n")] + strings.Replace(old[strings.Index(old, "  - name: v1beta1"):], "storage: false", "storage: true", 1), []string{
			`v1 spec.versions[v1]: the version is removed`}},
		{"a served version", old[:strings.Index(old, "  - name: v1beta1")], []string{
			`v1beta1 spec.versions[v1beta1]: the version is removed`}},
		{"a version that is no longer served", replace("true\n    storage: false", "false\n    storage: false"), []string{"v1beta1 spec.versions[v1beta1].served: true is now false"}},
		{"the status", replace("status: {}, ", ""), []string{"v1 subresources.status: the subresource is removed"}},
		{"scale", replace(", scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}", ""), []string{"v1 subresources.scale: the subresource is removed"}},
		{"what scale reads", replace("statusReplicasPath: .status.size", "statusReplicasPath: .status.a"), []string{"v1 subresources.scale: statusReplicasPath .status.size is now .status.a"}},
		{"columns", replace("{name: Size, type: integer, jsonPath: .spec.size}, ", "", "type: string, jsonPath", "type: date, jsonPath"), []string{
			"v1 additionalPrinterColumns[Size]: the column is removed", "v1 additionalPrinterColumns[Colour]: string .spec.colour is now date .spec.colour"}},
		{"selectable fields", replace("selectableFields", "#"), []string{"v1 selectableFields[.spec.colour]: the field is removed"}},
		// Without a webhook, the other versions lose it too: it is reported once.
		{"a field of the stored version", replace("size: {type: integer}, colour", "colour"), []string{
			`v1 spec.size: the field is removed {"spec":{"size":0}} -> spec.size: removed, was 0`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breaks(t, old, test.new)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScale_AddedRefusesNegativeReplicas(t *testing.T) {
	const scale = "subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}, "
	for _, test := range []struct {
		name, size string
		want       []string
	}{
		{"negative", "type: integer", []string{
			`v1 spec.size: the scale subresource reads it now {"spec":{"size":-1}} => .spec.size: Invalid value: -1: should be a non-negative integer`,
			`v1 status.size: the scale subresource reads it now {} replaced by status of {"status":{"size":-1}} => .status.size: Invalid value: -1: should be a non-negative integer`}},
		{"large", "type: integer, minimum: 0", []string{
			`v1 spec.size: the scale subresource reads it now {"spec":{"size":2147483648}} => .spec.size: Invalid value: 2147483648: should be less than or equal to 2147483647`,
			`v1 status.size: the scale subresource reads it now {} replaced by status of {"status":{"size":2147483648}} => .status.size: Invalid value: 2147483648: should be less than or equal to 2147483647`}},
		{"another type", "type: string", []string{
			`v1 spec.size: the scale subresource reads it now {"spec":{"size":""}} => .spec.size: Invalid value: 0: .spec.size accessor error:  is of the type string, expected int64`,
			`v1 status.size: the scale subresource reads it now {} replaced by status of {"status":{"size":""}} => .status.size: Invalid value: 0: .status.size accessor error:  is of the type string, expected int64`}},
		{"in range already", "type: integer, minimum: 0, format: int32", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields := "{type: object, properties: {size: {" + test.size + "}}}"
			old := withSchema("{type: object, properties: {spec: " + fields + ", status: " + fields + "}}")
			old = strings.Replace(old, "schema: ", "subresources: {status: {}}, schema: ", 1)
			got := breaks(t, old, strings.Replace(old, "subresources: {status: {}}, ", scale, 1))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Objects cannot be created in a version that is not served, but may be stored in it.
func TestChanges_StoredVersionIsNotServed(t *testing.T) {
	definition := func(v1, stored string) string {
		return apples + `  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {r: {type: string}, s: {type: string}}}}}
  - {name: v1, served: false, storage: false, schema: {openAPIV3Schema: {type: object, properties: {` + v1 + `}}}}
status: {storedVersions: ` + stored + `, conditions: [], acceptedNames: {plural: apples, kind: Apple}}
`
	}
	const both = "r: {type: string}, s: {type: string}"
	for _, test := range []struct {
		name, stored, v1 string
		want             []string
	}{
		{"it is stored, and loses a field", "[v1, v2]", "r: {type: string}", []string{`v1 s: the field is removed {"s":""} -> s: removed, was ""`}},
		{"it is stored, and is stricter", "[v1, v2]", "r: {type: string, maxLength: 3}, s: {type: string}", nil},
		{"it is not stored", "[v2]", "r: {type: string}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breaks(t, definition(both, test.stored), definition(test.v1, test.stored))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Pruning breaks old definitions.
func TestChanges_Pruning(t *testing.T) {
	new := withSchema("{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}")
	old := strings.Replace(new, "scope:", "preserveUnknownFields: true\n  scope:", 1)
	want := []string{`spec.preserveUnknownFields: true is now false`}
	if diff := cmp.Diff(want, breaks(t, old, new)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = append(want, `v1 spec.size: maximum is 5 now {"spec":{"size":6}} => spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5`)
	if diff := cmp.Diff(want, breaks(t, old, strings.Replace(new, "integer", "integer, maximum: 5", 1))); diff != "" {
		t.Errorf("with a bound (-want +got):\n%s", diff)
	}
}

// What was allowed without a schema is unknown.
func TestChanges_NoSchema(t *testing.T) {
	preserves := strings.Replace(apples, "scope:", "preserveUnknownFields: true\n  scope:", 1) + "  - {name: v1, served: true, storage: true"
	old, new := preserves+"}\n", preserves+", schema: {openAPIV3Schema: {type: object, required: [spec]}}}\n"
	if got := breaks(t, new, old); got != nil {
		t.Errorf("without a schema, it breaks %v", got)
	}
	if diff := cmp.Diff([]string{"v1 .: the schema has changed UNPROVEN"}, breaks(t, old, new)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A change is proven where others are near it, and in the company of all that is required.
func TestChanges_ManyAreToldApart(t *testing.T) {
	old := withSchema(`{type: object, required: [spec], properties: {spec: {type: object, required: [id, kind], x-kubernetes-validations: [{rule: "self.kind != 'a' || has(self.size)"}], properties: {
  id: {type: string, pattern: '^[a-z]{3}-[0-9]+$'}, kind: {type: string, enum: [a, b]}, size: {type: integer, minimum: 1}, gone: {type: string}}}}}`)
	new := strings.NewReplacer("enum: [a, b]", "enum: [b]", "minimum: 1", "minimum: 2", ", gone: {type: string}", "", "{3}", "{4}").Replace(old)
	got := breaks(t, old, new)
	var names []string
	for _, c := range got {
		name, _, _ := strings.Cut(c, " {")
		names = append(names, name)
		if strings.Contains(c, "UNPROVEN") {
			t.Errorf("%s", c)
		}
	}
	// No object shows that spec.gone is removed: each new ID is refused.
	if diff := cmp.Diff([]string{
		"v1 spec.gone: the field is removed",
		"v1 spec.id: the pattern ^[a-z]{3}-[0-9]+$ is now ^[a-z]{4}-[0-9]+$",
		`v1 spec.kind: the value "a" is removed`,
		"v1 spec.size: minimum 1 is now 2",
	}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each definition is compared with that of its kind in the new release, whatever their order, and proven
// with objects of the kind.
func TestChanges_Release(t *testing.T) {
	apple, shorter := property("{type: string, enum: [p, q]}"), property("{type: string, enum: [q]}")
	before := release(definition(t, apple), definition(t, pears(apple)), definition(t, strings.NewReplacer("apples", "plums", "Apple", "Plum").Replace(apple)))
	after := release(definition(t, pears(shorter)), definition(t, shorter))
	all, err := breaking.Changes(t.Context(), before, after)
	expect.NoError(t, err)
	var got []string
	for _, c := range all {
		got = append(got, c.String())
		if c.Proof != nil {
			got = append(got, string(c.Proof.Object))
		}
	}
	if diff := cmp.Diff([]string{
		`Apple.example.com v1 spec.a: the value "p" is removed: it is refused in new objects, and in updates that set it`,
		`{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a"},"spec":{"a":"p"}}`,
		`Pear.example.com v1 spec.a: the value "p" is removed: it is refused in new objects, and in updates that set it`,
		`{"apiVersion":"example.com/v1","kind":"Pear","metadata":{"name":"a"},"spec":{"a":"p"}}`,
		`Plum.example.com: the definition is removed: all its objects are deleted, and clients find nothing`,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What another kind loses in its storage version is another change.
func TestChanges_ReleaseStorage(t *testing.T) {
	old := apples + `  - {name: v1, served: true, storage: true,
     schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}}
  - {name: v2, served: true, storage: false,
     schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}
`
	new := strings.NewReplacer("storage: true", "storage: false", "storage: false", "storage: true").Replace(old)
	counts := map[string]int{}
	all, err := breaking.Changes(t.Context(), release(definition(t, old), definition(t, pears(old))), release(definition(t, new), definition(t, pears(new))))
	expect.NoError(t, err)
	for _, c := range all {
		counts[c.Kind.Kind]++
	}
	if counts["Apple"] == 0 || counts["Apple"] != counts["Pear"] {
		t.Errorf("there are %d changes of Apple and %d of Pear, want the same: %v", counts["Apple"], counts["Pear"], all)
	}
}

// A sample of another kind proves nothing, whatever its version is.
func TestChanges_SampleOfAnotherKind(t *testing.T) {
	old, new := property(locked), property(strings.Replace(locked, "integer", "integer, maximum: 3", 1))
	for kind, proven := range map[string]bool{"Apple": true, "Pear": false} {
		sample := map[string]any{"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"a": map[string]any{"digest": "77"}}}
		all, err := breaking.Changes(t.Context(), release(definition(t, old)), release(definition(t, new)), breaking.Samples(sample))
		expect.NoError(t, err)
		if len(all) != 1 || all[0].Unproven == proven {
			t.Errorf("with a sample of %s: %v, want one change, proven: %t", kind, all, proven)
		}
	}
}

// A release without definitions would prove nothing.
func TestChanges_RefusesWrongReleases(t *testing.T) {
	pear := definition(t, property("{type: string}"))
	for want, releases := range map[string][2]schema.Release{
		"breaking: the old release: no Definitions, expected those of schema.ParseAll": {{}, release(pear)},
		"breaking: the new release: no Definitions, expected those of schema.ParseAll": {release(pear), {Manifests: map[string][]byte{"crd.yaml": []byte(property("{}"))}}},
		"breaking: the old release: Apple.example.com is defined twice":                {release(pear, pear), release(pear)},
		"breaking: the new release: Apple.example.com is defined twice":                {release(pear), release(pear, pear)},
	} {
		if _, err := breaking.Changes(t.Context(), releases[0], releases[1]); err == nil || err.Error() != want {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
}

// A search that is interrupted is an error. A change that it did not look at is not called unproven, while one of
// which the search was completed is.
func TestChanges_Interrupted(t *testing.T) {
	old, new := property(locked), property(strings.Replace(locked, "integer", "integer, maximum: 3", 1))
	before := release(definition(t, old), definition(t, pears(old)))
	after := release(definition(t, new), definition(t, pears(new)))
	for name, want := range map[string]string{"Apple": "", "Pear": "Apple"} {
		late := errors.New("too late")
		ctx, cancel := context.WithCancelCause(t.Context())
		all, err := breaking.Changes(ctx, before, after, breaking.Progress(func(c breaking.Change) {
			if c.Kind.Kind == name && c.Path != "" {
				cancel(late)
			}
		}))
		if !errors.Is(err, late) {
			t.Errorf("the error is %v, want one that wraps %q", err, late)
		}
		got := ""
		for _, c := range all {
			if got += c.Kind.Kind; !c.Unproven {
				t.Errorf("%s is proven", c)
			}
		}
		if got != want {
			t.Errorf("interrupted at %s, the changes are of %q, want of %q", name, got, want)
		}
	}
}

// No object is found that the old rule accepts.
const locked = `{type: object, required: [digest], properties: {digest: {type: string, maxLength: 99}, size: {type: integer}},
  x-kubernetes-validations: [{rule: "int(self.digest) % 9973 == 77"}]}`

func TestChanges_PlainBreaksNeedNoProof(t *testing.T) {
	for _, test := range []struct{ name, new, want string }{
		{"a field removed", "{type: object, properties: {size: {type: integer}}}", "v1 spec.a.digest: the field is removed"},
		{"a new field required", strings.NewReplacer("[digest]", "[digest, x]", "size:", "x: {type: string}, size:").Replace(locked), "v1 spec.a.x: it is now required"},
		{"a bound", strings.Replace(locked, "integer", "integer, maximum: 3", 1), "v1 spec.a.size: maximum is 3 now UNPROVEN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{test.want}, breaks(t, property(locked), property(test.new))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChanges_SamplesProve(t *testing.T) {
	sample := map[string]any{"apiVersion": "example.com/v1", "kind": "Apple",
		"metadata": map[string]any{"name": "b", "labels": map[string]any{"a": "b"}, "managedFields": []any{}},
		"spec": map[string]any{"a": map[string]any{"size": int64(7),
			"digest": "77"}}}
	for _, test := range []struct{ name, old, new, shows string }{
		{"a field that it lacks", "note: {type: string}", "note: {type: string, maxLength: 5}", `"note":"aaaaaa"`},
		{"a bound", "integer", "integer, maximum: 3", `"size":7`},
		{"a default", "integer", "integer, default: 3", `77"}`},
		{"a bound that it does not reach", "integer", "integer, maximum: 8", `"size":9`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(locked, "size:", "note: {type: string}, size:", 1)
			changes := changes(t, property(text), property(strings.Replace(text, test.old, test.new, 1)), sample)
			if len(changes) != 1 || changes[0].Proof == nil || !strings.Contains(string(changes[0].Proof.Object), test.shows) {
				t.Fatalf("the changes are %v, want one that %s proves", changes, test.shows)
			}
			if object := string(changes[0].Proof.Object); strings.Contains(object, "labels") || strings.Contains(object, "managedFields") {
				t.Errorf("the proof %s has metadata that it does not need", object)
			}
		})
	}
}

// The search sets fields whose names rules escape.
func TestChanges_EscapedNames(t *testing.T) {
	for _, rule := range []string{"has(self.__namespace__) && self.__namespace__.startsWith('x')", "has(self.a__dash__b) && self.a__dash__b == 'y'"} {
		old := property(`{type: object, x-kubernetes-validations: [{rule: "` + rule + `"}], properties: {namespace: {type: string}, a-b: {type: string}, size: {type: integer}}}`)
		changes := changes(t, old, strings.Replace(old, "size: {type: integer", "size: {type: integer, maximum: 3", 1))
		if len(changes) != 1 || changes[0].Proof == nil {
			t.Errorf("%s: the changes are %v, want one with a proof", rule, changes)
		}
	}
}

// A rule that belongs to a new field or value refuses nothing that was accepted, nor does one that
// says what an old one says. One that looks alike may.
func TestChanges_RulesThatRefuseNothing(t *testing.T) {
	const filter = `{type: array, maxItems: 4, items: {type: object, required: [type], RULES properties: {type: {type: string, enum: [A, B]}, b: {type: string}, size: {type: integer, default: 1}}}}`
	old := strings.Replace(filter, "RULES", `x-kubernetes-validations: [{rule: "self.type == 'B' ? self.b == 'x' : true"}],`, 1)
	with := func(rule string) string {
		s := strings.Replace(old, "b: {type: string}", "b: {type: string}, cors: {type: string}, kind: {type: string, default: x}", 1)
		return strings.Replace(strings.Replace(s, "[A, B]", "[A, B, CORS]", 1), "validations: [", `validations: [{rule: "`+rule+`"}, `, 1)
	}
	for rule, harmless := range map[string]bool{
		"!(has(self.cors) && self.type != 'CORS')":                  true,
		"!(!has(self.cors) && self.type == 'CORS')":                 true,
		"!has(self.cors) || self.cors == self.type":                 true,
		"self.type == 'B' && has(self.size) ? self.b == 'x' : true": true,
		"!(!has(self.cors) && self.type == 'A')":                    false,
		"!has(self.kind) || self.type == 'CORS'":                    false,
		"self.type == 'B' ? self.b == 'y' : true":                   false,
	} {
		t.Run(rule, func(t *testing.T) {
			if got := breaks(t, property(old), property(with(rule))); harmless == (len(got) > 0) {
				t.Errorf("the changes are %v, and the rule is harmless: %t", got, harmless)
			}
		})
	}
	all := strings.Replace(filter, "RULES", "", 1)
	const one = "self.filter(f, f.type == 'CORS').size() <= 1"
	if got := breaks(t, property(all), property(strings.Replace(all, "maxItems", `x-kubernetes-validations: [{rule: "`+one+`"}], maxItems`, 1))); got != nil {
		t.Errorf("%s breaks %v", one, got)
	}
}

// A rule that allows more refuses nothing. One that looks alike may.
func TestChanges_RulesThatAllowMore(t *testing.T) {
	with := func(rules ...string) string {
		for i, rule := range rules {
			rules[i] = fmt.Sprintf("{rule: %q}", rule)
		}
		return property("{type: object, properties: {a: {type: integer}, b: {type: string, maxLength: 9}, l: {type: array, maxItems: 9, items: {type: integer}}, m: {type: array, maxItems: 3, items: {type: object, properties: {k: {type: integer}}}}}, x-kubernetes-validations: [" + strings.Join(rules, ", ") + "]}")
	}
	for _, c := range []struct {
		old      []string
		new      string
		harmless bool
	}{
		{[]string{"!has(self.a) || self.a > 3"}, "!has(self.a) || self.a > 2", true},
		{[]string{"!has(self.a) || self.a > 3"}, "!has(self.a) || self.a >= 3", true},
		{[]string{"!has(self.a) || self.a > 3"}, "!has(self.a) || self.a > 4", false},
		{[]string{"!has(self.a) || self.a >= 3"}, "!has(self.a) || self.a > 3", false},
		{[]string{"!has(self.a) || self.a < 3"}, "!has(self.a) || self.a > 2", false},
		{[]string{"!has(self.a) || !(self.a > 3)"}, "!has(self.a) || !(self.a > 4)", true},
		{[]string{"!has(self.a) || !(self.a > 3)"}, "!has(self.a) || !(self.a > 2)", false},
		{[]string{"!has(self.b) || self.b.size() <= 3"}, "!has(self.b) || self.b.size() <= 5", true},
		{[]string{"!has(self.b) || self.b in ['x', 'y']"}, "!has(self.b) || self.b in ['y', 'z', 'x']", true},
		{[]string{"!has(self.b) || self.b in ['x', 'y']"}, "!has(self.b) || self.b in ['y', 'z']", false},
		{[]string{"!has(self.b) || self.b == 'x'"}, "!has(self.b) || self.b in ['y', 'x']", true},
		{[]string{"!has(self.b) || self.b == 'x'"}, "!has(self.b) || self.b in ['y', 'z']", false},
		{[]string{"!has(self.m) || self.m.all(x, !has(x.k) || x.k < 3)"}, "!has(self.m) || self.m.all(x, !has(x.k) || x.k < 4)", true},
		{[]string{"!has(self.m) || self.m.exists_one(x, !has(x.k) || x.k < 3)"}, "!has(self.m) || self.m.exists_one(x, !has(x.k) || x.k < 4)", false},
		{[]string{"has(self.a)", "has(self.b)"}, "has(self.a) && has(self.b)", true},
		{[]string{"has(self.a) && has(self.b)"}, "has(self.b)", true},
		{[]string{"has(self.a) && has(self.b)"}, "has(self.b) && has(self.l)", false},
		{[]string{"self == oldSelf && has(self.a)"}, "has(self.a)", false},
		{[]string{"has(self.a)"}, "has(self.a) || self == oldSelf", true},
	} {
		got := breaks(t, with(c.old...), with(c.new))
		if c.harmless == (len(got) > 0) {
			t.Errorf("%q → %q: the changes are %v, and the rule is harmless: %t", c.old, c.new, got, c.harmless)
		}
	}
}

// A type without an enum takes the strings that rules compare it with.
func TestChanges_UnionWithoutEnumIsProven(t *testing.T) {
	old := property(`{type: object, required: [type], properties: {type: {type: string}, disk: {type: object, properties: {size: {type: string, maxLength: 9}}}, net: {type: string}},
  x-kubernetes-validations: [{rule: "self.type == 'PersistentDisk' ? has(self.disk) : !has(self.disk)"}, {rule: "self.type == 'Network' ? has(self.net) : !has(self.net)"}]}`)
	for _, c := range breaks(t, old, strings.Replace(old, "maxLength: 9", "maxLength: 5", 1)) {
		if !strings.Contains(c, `"type":"PersistentDisk"`) {
			t.Errorf("%s, want a proof with the type PersistentDisk", c)
		}
	}
}

// Each object with a small size is refused now: those that show the default are large.
func TestChanges_AlteredObjectsAreAccepted(t *testing.T) {
	old := property("{type: object, required: [size], properties: {size: {type: integer}, b: {type: string, default: x}}}")
	new := strings.NewReplacer("integer", "integer, minimum: 5", "default: x", "default: z").Replace(old)
	for _, c := range changes(t, old, new) {
		if c.Effect != breaking.Altered {
			continue
		}
		if _, err := definition(t, new).Version("v1").Create(t.Context(), c.Proof.Object); err != nil {
			t.Errorf("%s: the new definition refuses %s: %v", c, c.Proof.Object, err)
		}
	}
}

// Items of another type are one change.
func TestChanges_ItemsOfAnotherType(t *testing.T) {
	old := property("{type: array, x-kubernetes-list-type: set, items: {type: string}}")
	new := property("{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}")
	if got := breaks(t, old, new); len(got) != 1 || !strings.Contains(got[0], "the type string is now object") {
		t.Errorf("the changes are %v, want one of the type", got)
	}
}

func TestChanges_SameLanguageOfPatterns(t *testing.T) {
	if got := breaks(t, property("{type: string, pattern: '^[a-zSA-Z]+$'}"), property("{type: string, pattern: '^[a-zA-Z]+$'}")); got != nil {
		t.Errorf("the changes are %v, want none", got)
	}
}

// Each change has an effect.
// CI chooses by the effect, and by whether there is a proof.
func TestChanges_Effect(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		want           string
	}{
		{"refused", "{type: string}", "{type: integer}", "refused proven"},
		{"altered", "{type: object, properties: {b: {type: string}}}", "{type: object}", "altered proven"},
		{"null, which is removed", "{type: string, nullable: true}", "{type: string}", "altered proven"},
		{"merged", "{type: object}", "{type: object, x-kubernetes-map-type: atomic}", "clients"},
		{"a stricter pattern", "{type: string, pattern: '^a+$'}", "{type: string, pattern: '^a$'}", "refused proven"},
		{"a looser rule", "{type: integer, x-kubernetes-validations: [{rule: self < 5}]}", "{type: integer, x-kubernetes-validations: [{rule: self - 1 < 5}]}", "refused unproven"},
		{"a rule that is always true", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self == self}]}", "refused unproven"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range changes(t, property(test.old), property(test.new)) {
				s := string(c.Effect)
				switch {
				case c.Unproven:
					s += " unproven"
				case c.Proof != nil:
					s += " proven"
				}
				got = append(got, s)
			}
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func definition(t testing.TB, text string) *schema.Definition {
	t.Helper()
	d, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

// Many fields are proven quickly.
func TestChanges_ManyFields(t *testing.T) {
	const n = 100 // on a busy machine there is no time to prove more
	fields := func(most int) *schema.Definition {
		var s strings.Builder
		s.WriteString("{type: object, properties: {spec: {type: object, required: [f3], properties: {")
		for i := range n {
			fmt.Fprintf(&s, "\nf%d: {type: string, maxLength: %d},", i, most)
		}
		s.WriteString("\nlast: {type: integer, default: 1}}, x-kubernetes-validations: [{rule: self.f5 != 'a' || self.last > 0}]}}}")
		return definition(t, withSchema(s.String()))
	}
	old, new := fields(20), fields(10)
	changes, err := breaking.Changes(t.Context(), release(old), release(new))
	expect.NoError(t, err)
	if len(changes) != n {
		t.Errorf("there are %d changes, want %d", len(changes), n)
	}
	for i, c := range changes {
		if c.Proof == nil {
			t.Fatalf("%s", c)
		}
		if i%10 != 0 {
			continue
		}
		if _, err := old.Version("v1").Create(t.Context(), c.Proof.Object); err != nil {
			t.Errorf("%s: the old definition refuses %s: %v", c, c.Proof.Object, err)
		}
		if _, err := new.Version("v1").Create(t.Context(), c.Proof.Object); err == nil {
			t.Errorf("%s: the new definition accepts %s", c, c.Proof.Object)
		}
	}
}

// A field that belongs to a type, as in the filters of an HTTPRoute, is proven with that
// type, and a reference has its port.
func TestProofs_ObeyTheRulesAroundThem(t *testing.T) {
	old := property(`{type: array, maxItems: 8, x-kubernetes-validations: [{rule: "self.all(a, self.exists_one(b, a.name == b.name))"}], items: {type: object, required: [name, type], x-kubernetes-validations: [
  {rule: "has(self.rewrite) == (self.type == 'Rewrite')"}, {rule: "has(self.mirror) == (self.type == 'Mirror')"}, {rule: "self.kind != 'Service' || has(self.port)"}], properties: {
  name: {type: string, maxLength: 40}, type: {type: string, enum: [None, Rewrite, Mirror]}, kind: {type: string, default: Service, maxLength: 40}, port: {type: integer},
  rewrite: {type: object, properties: {path: {type: string, maxLength: 20}}}, mirror: {type: object, properties: {host: {type: string, maxLength: 20}}}}}}`)
	new := strings.NewReplacer("maxLength: 20", "maxLength: 10", "maxLength: 40", "maxLength: 30").Replace(old)
	changes := breaks(t, old, new)
	if len(changes) != 4 {
		t.Errorf("there are %d changes, want 4", len(changes))
	}
	for _, c := range changes {
		if strings.Contains(c, "UNPROVEN") {
			t.Error(c)
		}
	}
}

package generate

import (
	"strings"
	"testing"

	"github.com/crdkit/crdkit/internal/choices"
)

// features are schemas of a property named v, or of the whole if they start with "root:",
// in YAML's flow style.
var features = map[string]string{
	"boolean":                     `{type: boolean}`,
	"integer":                     `{type: integer}`,
	"int32":                       `{type: integer, format: int32}`,
	"int64":                       `{type: integer, format: int64}`,
	"integer between":             `{type: integer, minimum: -3, maximum: 10}`,
	"integer strictly between":    `{type: integer, minimum: 3, maximum: 6, exclusiveMinimum: true, exclusiveMaximum: true}`,
	"negative integer":            `{type: integer, maximum: -7}`,
	"multiple":                    `{type: integer, minimum: 5, maximum: 1000, multipleOf: 7}`,
	"large integer":               `{type: integer, minimum: 9007199254740993}`,
	"number":                      `{type: number}`,
	"float":                       `{type: number, format: float}`,
	"double":                      `{type: number, format: double}`,
	"number between":              `{type: number, minimum: 0.25, maximum: 1.5}`,
	"number strictly between":     `{type: number, minimum: 0, maximum: 1, exclusiveMinimum: true, exclusiveMaximum: true}`,
	"number below a fraction":     `{type: number, minimum: 0, maximum: 10.5, exclusiveMaximum: true}`,
	"negative number":             `{type: number, maximum: -0.5}`,
	"multiple of a fraction":      `{type: number, multipleOf: 0.01, minimum: 0, maximum: 10}`,
	"multiple of more than one":   `{type: number, multipleOf: 2.5}`,
	"string":                      `{type: string}`,
	"string of lengths":           `{type: string, minLength: 3, maxLength: 5}`,
	"empty string":                `{type: string, maxLength: 0}`,
	"long string":                 `{type: string, minLength: 300}`,
	"pattern":                     `{type: string, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$', minLength: 5, maxLength: 63}`,
	"pattern without anchors":     `{type: string, pattern: 'a+b|\d{3}'}`,
	"pattern with a class":        `{type: string, pattern: '^[^\s,]{2,}$'}`,
	"pattern with flags":          `{type: string, pattern: '(?i)^(enabled|disabled)$'}`,
	"pattern with boundaries":     `{type: string, pattern: '\bfoo\b'}`,
	"pattern with Unicode":        `{type: string, pattern: '^\p{Greek}+$', maxLength: 9}`,
	"pattern of quantities":       `{type: string, pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}`,
	"pattern of a length":         `{type: string, pattern: '^([a-z]{2}-)+[0-9]$', minLength: 16, maxLength: 16}`,
	"unknown format":              `{type: string, format: pizza, maxLength: 4}`,
	"format with lengths":         `{type: string, format: hostname, minLength: 10, maxLength: 15}`,
	"format with pattern":         `{type: string, format: uri, pattern: '^https://'}`,
	"enum":                        `{type: string, enum: [a, b, '']}`,
	"enum of integers":            `{type: integer, enum: [1, 2, 3], maximum: 2}`,
	"enum of objects":             `{type: object, properties: {a: {type: integer}}, enum: [{a: 1}, {}]}`,
	"nullable enum":               `{type: string, nullable: true, enum: [a]}`,
	"nullable":                    `{type: string, nullable: true}`,
	"nullable object":             `{type: object, nullable: true, properties: {a: {type: integer}}, required: [a]}`,
	"nullable elements":           `{type: array, items: {type: string, nullable: true}}`,
	"nullable entries":            `{type: object, additionalProperties: {type: integer, nullable: true}}`,
	"nullable with default":       `{type: string, nullable: true, default: x}`,
	"default":                     `{type: object, default: {}, properties: {a: {type: string, default: x}, b: {type: integer, default: 3}}}`,
	"required":                    `{type: object, required: [a], properties: {a: {type: string}, b: {type: integer}}}`,
	"required entry":              `{type: object, required: [a], additionalProperties: {type: string}}`,
	"properties at least":         `{type: object, minProperties: 2, properties: {a: {type: string}, b: {type: integer}, c: {type: boolean}}}`,
	"properties at most":          `{type: object, maxProperties: 1, properties: {a: {type: string}, b: {type: integer}, c: {type: boolean}}}`,
	"properties with defaults":    `{type: object, maxProperties: 2, properties: {a: {type: string}, b: {type: integer, default: 1}, c: {type: boolean}}}`,
	"entries":                     `{type: object, additionalProperties: {type: integer}}`,
	"entries at least":            `{type: object, additionalProperties: {type: integer}, minProperties: 3, maxProperties: 5}`,
	"entries of entries":          `{type: object, additionalProperties: {type: object, additionalProperties: {type: array, items: {type: string}}}}`,
	"any entries":                 `{type: object, additionalProperties: true}`,
	"array":                       `{type: array, items: {type: string}}`,
	"array of lengths":            `{type: array, items: {type: integer}, minItems: 2, maxItems: 5}`,
	"array of arrays":             `{type: array, items: {type: array, items: {type: boolean}}}`,
	"set":                         `{type: array, x-kubernetes-list-type: set, items: {type: string}, minItems: 3}`,
	"set of booleans":             `{type: array, x-kubernetes-list-type: set, items: {type: boolean}}`,
	"set of an enum":              `{type: array, x-kubernetes-list-type: set, items: {type: string, enum: [a, b, c]}, minItems: 3}`,
	"set of numbers":              `{type: array, x-kubernetes-list-type: set, items: {type: number}, minItems: 2}`,
	"set of objects":              `{type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string, default: x}, b: {type: integer}}}, minItems: 2}`,
	"set of int or string":        `{type: array, x-kubernetes-list-type: set, items: {x-kubernetes-int-or-string: true}, minItems: 3}`,
	"unique items":                `{type: array, uniqueItems: true, items: {type: integer, minimum: 0, maximum: 3}, minItems: 2}`,
	"list map":                    `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, v: {type: integer}}}, minItems: 2}`,
	"list map with two keys":      `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], minItems: 3, items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1, maximum: 3}, protocol: {type: string, default: TCP, enum: [TCP, UDP]}}}}`,
	"list map with default keys":  `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string, default: x, maxLength: 1}}}, minItems: 2}`,
	"map type":                    `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: integer}}}`,
	"int or string":               `{x-kubernetes-int-or-string: true}`,
	"int or string, anyOf":        `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`,
	"int or percentage":           `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+%$', minimum: 0, maximum: 99.5}`,
	"int or string, allOf":        `{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {maximum: 10}, {maxLength: 3}]}`,
	"int or string, format":       `{x-kubernetes-int-or-string: true, maxLength: 2, format: duration}`,
	"unknown fields":              `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}, b: {type: object}}}`,
	"unknown fields required":     `{type: object, x-kubernetes-preserve-unknown-fields: true, required: [a, b]}`,
	"anything":                    `{x-kubernetes-preserve-unknown-fields: true}`,
	"anything nullable":           `{x-kubernetes-preserve-unknown-fields: true, nullable: true}`,
	"anything but a string":       `{x-kubernetes-preserve-unknown-fields: true, maxLength: 0, minimum: 3}`,
	"embedded":                    `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
	"embedded with a schema":      `{type: object, x-kubernetes-embedded-resource: true, required: [spec, metadata], properties: {apiVersion: {type: string, enum: [v1]}, kind: {type: string, pattern: ^P}, metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}, spec: {type: object, properties: {a: {type: integer}}}}}`,
	"embedded in a list":          `{type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}`,
	"allOf":                       `{type: integer, allOf: [{minimum: 3}, {maximum: 5}, {multipleOf: 2}]}`,
	"allOf of patterns":           `{type: string, allOf: [{pattern: ^a}, {pattern: 'b$'}, {minLength: 4}]}`,
	"allOf within":                `{type: object, properties: {a: {type: integer}, b: {type: array, items: {type: string}}}, allOf: [{required: [a], properties: {a: {minimum: 7}, b: {minItems: 1, items: {pattern: '^x'}}}}]}`,
	"anyOf":                       `{type: integer, anyOf: [{maximum: -1000000}, {minimum: 1000000}]}`,
	"anyOf of formats":            `{type: string, anyOf: [{format: ipv4}, {format: ipv6}]}`,
	"anyOf of patterns":           `{type: string, anyOf: [{pattern: '^[a-z]{3}$'}, {enum: [Always, Never]}]}`,
	"oneOf required":              `{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}`,
	"oneOf with not":              `{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, oneOf: [{required: [a], not: {required: [b]}}, {required: [b]}, {not: {anyOf: [{required: [a]}, {required: [b]}]}}]}`,
	"oneOf by type":               `{type: object, required: [type], properties: {type: {type: string}, a: {type: object, properties: {x: {type: integer}}}, b: {type: object, properties: {y: {type: string}}}}, oneOf: [{properties: {type: {enum: [A]}}, required: [a]}, {properties: {type: {enum: [B]}, b: {properties: {y: {minLength: 3}}, required: [y]}}, required: [b]}]}`,
	"oneOf with a default":        `{type: object, properties: {a: {type: string}, b: {type: string, default: x}}, oneOf: [{required: [a]}, {required: [b]}]}`,
	"not":                         `{type: integer, minimum: 0, maximum: 3, not: {enum: [0, 1]}}`,
	"not required":                `{type: object, properties: {a: {type: string}, b: {type: string}}, not: {required: [a]}}`,
	"not a pattern":               `{type: string, not: {pattern: '^a*$'}}`,
	"anyOf and oneOf":             `{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}, d: {type: integer}}, anyOf: [{required: [a]}, {required: [b]}], oneOf: [{required: [c]}, {required: [d]}]}`,
	"nested anyOf":                `{type: object, properties: {a: {type: integer}, b: {type: integer}}, anyOf: [{allOf: [{required: [a]}, {anyOf: [{properties: {a: {minimum: 5}}}, {properties: {a: {maximum: -5}}}]}]}, {required: [b]}]}`,
	"elements with anyOf":         `{type: array, minItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, a: {type: integer}, b: {type: integer}}, oneOf: [{required: [a]}, {required: [b]}]}}`,
	"an optional contradiction":   `{type: object, properties: {a: {type: integer, minimum: 3, maximum: 2}, b: {type: array, items: {type: string, minLength: 2, maxLength: 1}}, c: {type: string, pattern: '(?!x)'}}}`,
	"root: anyOf":                 `{type: object, properties: {a: {type: integer}, b: {type: string}}, anyOf: [{required: [a]}, {required: [b]}]}`,
	"root: name":                  `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 5, pattern: '^p-'}}}, spec: {type: object}}, required: [spec, metadata, kind]}`,
	"root: a rule's name":         `{type: object, required: [spec], properties: {spec: {type: integer}}, x-kubernetes-validations: [{rule: "self.metadata.name in ['cluster', \"other\"]"}]}`,
	"root: generateName":          `{type: object, properties: {metadata: {type: object, properties: {generateName: {type: string, maxLength: 5, pattern: '^p-'}}}}}`,
	"root: no generateName":       `{type: object, properties: {metadata: {type: object, properties: {generateName: {type: string, minLength: 3, maxLength: 2}}}}}`,
	"root: unknown fields":        `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
	"root: properties":            `{type: object, properties: {a: {type: integer}, b: {type: integer}}, minProperties: 4, maxProperties: 4}`,
	"CEL: order":                  `{type: object, required: [min, max], properties: {min: {type: integer, minimum: 1}, max: {type: integer}}, x-kubernetes-validations: [{rule: self.min <= self.max}, {rule: self.max < 1000}]}`,
	"CEL: union":                  `{type: object, required: [type], properties: {type: {type: string, enum: [A, B, C]}, a: {type: object, properties: {x: {type: integer}}}, b: {type: object, properties: {y: {type: string}}}}, x-kubernetes-validations: [{rule: "(self.type == 'A') == has(self.a)"}, {rule: "(self.type == 'B') == has(self.b)"}]}`,
	"CEL: one of":                 `{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}}, x-kubernetes-validations: [{rule: "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) == 1"}]}`,
	"CEL: a name":                 `{type: object, required: [id], properties: {id: {type: string}, list: {type: array, items: {type: string, x-kubernetes-validations: [{rule: "self.startsWith('a')"}]}, maxItems: 9}}, x-kubernetes-validations: [{rule: "self.id != '' && !self.id.contains('z')"}]}`,
	"CEL: both":                   `{type: object, properties: {name: {type: string}, namespace: {type: string}}, x-kubernetes-validations: [{rule: "has(self.name) && has(self.__namespace__)"}]}`,
	"CEL: neither":                `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.a) && !has(self.b)"}]}`,
	"CEL: a part":                 `{type: object, required: [of], properties: {by: {type: string}, reason: {type: string}, of: {type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "has(self.a) || has(self.b)"}]}}, x-kubernetes-validations: [{rule: "has(self.by) || has(self.reason)"}]}`,
	"CEL: quantity, with default": `{type: array, maxItems: 100, items: {type: object, properties: {q: {type: integer, minimum: 1, maximum: 100, default: 1}}}, x-kubernetes-validations: [{rule: "self.map(t, t.q).sum() <= 100"}]}`,
}

// schemas returns the schema of each feature.
func schemas() map[string]string {
	out := map[string]string{}
	for name, v := range features {
		if !strings.HasPrefix(name, "root:") {
			v = `{type: object, required: [v], properties: {v: ` + v + `}}`
		}
		out[name] = v
	}
	for _, f := range strings.Fields(formats) {
		out["format "+f] = `{type: object, required: [v], properties: {v: {type: string, format: ` + f + `}}}`
	}
	return out
}

const formats = "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn " +
	"hexcolor rgbcolor byte password date duration datetime date-time k8s-short-name k8s-long-name"

// Objects of every feature are accepted.
func TestGenerator_EveryFeature(t *testing.T) {
	for name, schema := range schemas() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, schema)
			for _, object := range objectsOf(t, s.generator(t), 50) {
				s.check(t, object)
			}
		})
	}
}

// Most objects are accepted or can be repaired. The same one takes the place of the others.
func TestGenerator_RepairsMost(t *testing.T) {
	for name, schema := range schemas() {
		if !strings.HasPrefix(name, "CEL") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := schemaOf(t, schema).generator(t)
			for i := range 40 {
				if _, err := g.try(choices.New(1, name, i)); err != nil {
					t.Errorf("object %d: %v", i, err)
				}
			}
		})
	}
}

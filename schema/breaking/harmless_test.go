package breaking_test

import (
	"strings"
	"testing"
)

// Changes that refuse and alter nothing are not reported, not even as unproven.
func TestChanges_HarmlessAreNotReported(t *testing.T) {
	const object = "{type: object, properties: {b: {type: string}, c: {type: string}}"
	for name, test := range map[string][2]string{
		"another order of required":           {object + ", required: [b, c]}", object + ", required: [c, b]}"},
		"an optional field":                   {object + "}", "{type: object, properties: {b: {type: string}, c: {type: string}, d: {type: array, items: {type: string}}}}"},
		"descriptions and examples":           {object + "}", object + ", description: A bowl, example: {b: x}, externalDocs: {url: 'https://example.com'}}"},
		"wider bounds":                        {"{type: integer, minimum: 1, maximum: 5}", "{type: integer, minimum: 0, maximum: 6}"},
		"longer lists":                        {"{type: array, maxItems: 5, items: {type: string, maxLength: 5}}", "{type: array, maxItems: 6, items: {type: string, maxLength: 6}}"},
		"a value more":                        {"{type: string, enum: [A]}", "{type: string, enum: [A, B]}"},
		"another order of values":             {"{type: string, enum: [A, B]}", "{type: string, enum: [B, A]}"},
		"no longer required":                  {object + ", required: [b]}", object + "}"},
		"a CEL rule with other spaces":        {rule(object, "has(self.b)"), rule(object, " has(self.b)  ")},
		"a CEL rule written otherwise":        {rule(object, "has(self.b)&&self.b!='x'"), rule(object, "has(self.b) && self.b != \\\"x\\\"")},
		"another message of a CEL rule":       {rule(object, "has(self.b)"), strings.Replace(rule(object, "has(self.b)"), "rule:", "message: b is missing, reason: FieldValueRequired, rule:", 1)},
		"no CEL rule":                         {rule(object, "has(self.b)"), object + "}"},
		"a CEL rule of a new field":           {object + "}", "{type: object, properties: {b: {type: string}, c: {type: string}, d: {type: string, maxLength: 9}}, x-kubernetes-validations: [{rule: \"!has(self.d) || self.d != 'x'\"}]}"},
		"a CEL rule of an optional new field": {"{type: object, properties: {b: {type: object}}}", "{type: object, properties: {b: {type: object, properties: {d: {type: string, maxLength: 9}}}}, x-kubernetes-validations: [{rule: \"!has(self.b) || !has(self.b.d) || self.b.d != 'x'\"}]}"},
		"optionalOldSelf false":               {rule(object, "has(self.b) == has(oldSelf.b)"), strings.Replace(rule(object, "has(self.b) == has(oldSelf.b)"), "rule:", "optionalOldSelf: false, rule:", 1)},
		"a looser pattern of numbers":         {"{x-kubernetes-int-or-string: true, pattern: '^[0-9]+%$'}", "{x-kubernetes-int-or-string: true, pattern: '^[0-9]+%?$'}"},
		"no pattern":                          {"{type: string, pattern: '^a'}", "{type: string}"},
		"a looser pattern":                    {"{type: string, pattern: '^[a-z]$'}", "{type: string, pattern: '^[a-z0-9]+$'}"},
		"a pattern that says less":            {"{type: string, pattern: '^(www\\.)?example\\.com$'}", "{type: string, pattern: 'example'}"},
		"a pattern with other groups":         {"{type: string, pattern: '^(a|b)*$'}", "{type: string, pattern: '^(?:[ab])*$'}"},
		"a pattern that all values have":      {"{type: string, enum: [A, B]}", "{type: string, enum: [A, B], pattern: '^[A-Z]$'}"},
		"a length that all values have":       {"{type: string, enum: [A]}", "{type: string, enum: [A], maxLength: 5, minLength: 1}"},
		"a length that a pattern implies":     {"{type: string, pattern: '^[a-z]{1,9}$'}", "{type: string, pattern: '^[a-z]{1,9}$', minLength: 1, maxLength: 9}"},
		"a length that a format implies":      {"{type: string, format: byte}", "{type: string, format: byte, minLength: 1}"},
		"a pattern that a length implies":     {"{type: string, pattern: '^a+$', maxLength: 3}", "{type: string, pattern: '^a{1,3}$', maxLength: 3}"},
		"a format that all values have":       {"{type: string, enum: ['10.0.0.0/8']}", "{type: string, enum: ['10.0.0.0/8'], format: cidr}"},
		"an enum of all numbers":              {"{type: integer, minimum: 1, maximum: 3}", "{type: integer, minimum: 1, maximum: 3, enum: [1, 2, 3]}"},
		"an enum of both":                     {"{type: boolean}", "{type: boolean, enum: [true, false]}"},
		"a bound that the values keep":        {"{type: integer, enum: [1, 5]}", "{type: integer, enum: [1, 5], maximum: 5}"},
		"a bound that 32 bits keep":           {"{type: integer, format: int32}", "{type: integer, format: int32, minimum: -2147483648, maximum: 2147483647}"},
		"a format that bounds keep":           {"{type: integer, minimum: 0, maximum: 65535}", "{type: integer, minimum: 0, maximum: 65535, format: int32}"},
		"a multiple that the values are":      {"{type: integer, enum: [10, 20]}", "{type: integer, enum: [10, 20], multipleOf: 5}"},
		"a composition of the values":         {"{type: string, enum: [A, B]}", "{type: string, enum: [A, B], anyOf: [{enum: [A]}, {enum: [B]}]}"},
		"a CEL rule that all values keep":     {"{type: string, enum: [A, B]}", "{type: string, enum: [A, B], x-kubernetes-validations: [{rule: \"self in ['A', 'B', 'C']\"}]}"},
		"anyOf in another order":              {"{type: string, anyOf: [{enum: [A]}, {enum: [B]}]}", "{type: string, anyOf: [{enum: [B]}, {enum: [A]}]}"},
		"oneOf in another order":              {"{type: string, oneOf: [{enum: [A]}, {enum: [B]}]}", "{type: string, oneOf: [{enum: [B]}, {enum: [A]}]}"},
		"a scalar that preserved fields":      {"{type: string, x-kubernetes-preserve-unknown-fields: true}", "{type: string}"},
		"a list of scalars that preserved":    {"{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: string}}", "{type: array, items: {type: string}}"},
		"minLength zero":                      {"{type: string}", "{type: string, minLength: 0}"},
		"minItems zero":                       {"{type: array, items: {type: string}}", "{type: array, minItems: 0, items: {type: string}}"},
		"minProperties that required implies": {object + ", required: [b]}", object + ", required: [b], minProperties: 1}"},
		"maxProperties of all fields":         {object + "}", object + ", maxProperties: 2}"},
		"an atomic list":                      {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}"},
		"a granular map":                      {"{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string}, x-kubernetes-map-type: granular}"},
		"an allOf that says the same":         {"{type: string, maxLength: 5}", "{type: string, maxLength: 5, allOf: [{maxLength: 5}]}"},
		"nullable false":                      {"{type: string}", "{type: string, nullable: false}"},
		"exclusiveMaximum false":              {"{type: integer, maximum: 5}", "{type: integer, maximum: 5, exclusiveMaximum: false}"},
		"a default of a new field":            {object + "}", "{type: object, properties: {b: {type: string}, c: {type: string}, d: {type: string, default: x, maxLength: 3}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := breaks(t, property(test[0]), property(test[1])); got != nil {
				t.Errorf("it breaks %s", strings.Join(got, "\n"))
			}
		})
	}
}

// rule adds a CEL rule to a schema that is not closed.
func rule(open, rule string) string {
	return strings.ReplaceAll(open, "type: string", "type: string, maxLength: 9") + ", x-kubernetes-validations: [{rule: \"" + rule + "\"}]}"
}

func TestChanges_HarmlessOutsideSchemas(t *testing.T) {
	old := withSchema("{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}")
	for name, new := range map[string]string{
		"a printer column":             strings.Replace(old, "schema: ", "additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}], schema: ", 1),
		"a selectable field":           strings.Replace(old, "schema: ", "selectableFields: [{jsonPath: .spec.a}], schema: ", 1),
		"a short name":                 strings.Replace(old, "kind: Apple", "kind: Apple, shortNames: [ap], categories: [fruit]", 1),
		"a deprecation":                strings.Replace(old, "schema: ", "deprecated: true, schema: ", 1),
		"a version":                    old + "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n",
		"a subresource of no status":   strings.Replace(old, "schema: ", "subresources: {status: {}}, schema: ", 1),
		"metadata, as it always is":    strings.Replace(old, "properties: {spec:", "properties: {metadata: {type: object}, apiVersion: {type: string}, kind: {type: string}, spec:", 1),
		"names as long as they may be": strings.Replace(old, "properties: {spec:", "properties: {metadata: {type: object, properties: {name: {type: string, minLength: 1, maxLength: 253}}}, spec:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if got := breaks(t, old, new); got != nil {
				t.Errorf("it breaks %s", strings.Join(got, "\n"))
			}
		})
	}
}

// Few values, or the strings of a pattern, do not decide what else a schema says.
func TestChanges_DecidedByMore(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{
			`{type: string, enum: [A, B]}`,
			`{type: string, enum: [A, B], x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf: true}]}`,
		},
		{
			`{type: boolean}`,
			`{type: boolean, x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf: true}]}`,
		},
		{`{type: string, format: date}`, `{type: string, format: date, pattern: '^3'}`},
		{`{type: string, format: ipv4}`, `{type: string, format: ipv4, pattern: '^10[.]'}`},
	} {
		if got := breaks(t, property(c.old), property(c.new)); len(got) != 1 || strings.Contains(got[0], "UNPROVEN") {
			t.Errorf("%s → %s: got %q, want a proof", c.old, c.new, got)
		}
	}
}

// A pattern with more states than are tried is undecided. All of them would take minutes.
func TestChanges_PatternOfManyStates(t *testing.T) {
	got := breaks(t, property(`{type: string, pattern: '[\p{L}\p{N} ]{1,253}x'}`), property(`{type: string, pattern: '[\p{L}\p{N}_ ]{1,253}x'}`))
	if len(got) != 1 || !strings.Contains(got[0], "UNPROVEN") {
		t.Errorf("got %q", got)
	}
}

package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// withSchema returns a small definition with a schema, which begins on line 13.
func withSchema(s string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: apples.example.com
spec:
  group: example.com
  scope: Cluster
  names: {plural: apples, kind: Apple}
  versions:
  - {name: v1, served: true, storage: true,
     schema: {
      openAPIV3Schema:
` + strings.ReplaceAll("\n"+s, "\n", "\n        ")[1:] + "}}\n"
}

// asJSON returns the JSON of a definition, and indented the same on many lines.
func asJSON(text string) string {
	j, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return string(j)
}

func indented(text string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(asJSON(text)), "", "\t"); err != nil {
		panic(err)
	}
	return b.String() + "\n"
}

// linesWith returns the lines of a text that have a word, from 1.
func linesWith(word, text string) (lines []int) {
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, word) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// problems returns what Check says, line by line.
func problems(t testing.TB, text string) (all []string) {
	t.Helper()
	found, err := schema.Check([]byte(text))
	expect.NoError(t, err)
	for _, f := range found {
		all = append(all, f.String())
	}
	return all
}

// Each rule of structural schemas has its number and its line.
// The example of the documentation, with the violations that it lists.
func TestCheck_StructuralRules(t *testing.T) {
	text := withSchema(`{
properties: {
  foo: {
    pattern: "abc"},
  metadata: {
    type: object,
    properties: {
      name: {type: string, pattern: "^a"},
      finalizers: {
        type: array,
        items: {type: string, pattern: "my-finalizer"}}}}},
anyOf: [
  {properties: {
     bar: {
       type: integer,
       minimum: 42}},
   required: [bar],
   description: "foo bar object"}]}`)
	const at = "apples.example.com: spec.versions[0].schema.openAPIV3Schema"
	want := []string{
		"12:7: " + at + ".type: Required value: must not be empty at the root",
		"14:9: " + at + ".properties[bar]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[bar]",
		"15:11: " + at + ".properties[foo].type: Required value: must not be empty for specified object fields",
		"17:11: " + at + ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
		"27:16: " + at + ".anyOf[0].properties[bar].type: Forbidden: must be empty to be structural",
		"30:12: " + at + ".anyOf[0].description: Forbidden: must be empty to be structural",
	}
	if diff := cmp.Diff(want, problems(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// problemCase is a definition with a problem, which begins with want, and has such an advice.
type problemCase struct{ name, text, want, advice string }

func problemCases() []problemCase {
	tiny := withSchema("{type: object}")
	replace := func(old, new string) string { return strings.Replace(tiny, old, new, 1) }
	with := func(properties string) string {
		return withSchema("{type: object, properties: {\n" + properties + "}}")
	}
	const top = "apples.example.com: "
	const at = top + "spec.versions[0].schema.openAPIV3Schema"
	return []problemCase{
		{"a name that is another", replace("name: apples.", "name: apple."), `4:3: apple.example.com: metadata.name: Invalid value: "apple.example.com": must be spec.names.plural+"."+spec.group`, "Name the definition by its plural"},
		{"a version that servers of today do not have", strings.Replace(withSchema("{type: object}"), "extensions.k8s.io/v1\n", "extensions.k8s.io/v1beta1\n", 1), `1:1: ` + top + `apiVersion: no matches for kind "CustomResourceDefinition" in version "apiextensions.k8s.io/v1beta1"`, "apiextensions.k8s.io/v1"},
		{"an unknown field", replace("scope:", "scopes: x\n  scope:"), `7:3: ` + top + `spec.scopes: unknown field "spec.scopes"`, "Remove it, or correct"},
		{"an unknown field in a version", replace("name: v1,", "name: v1,\n     x: 1,"), `11:6: ` + top + `spec.versions[0].x: unknown field "spec.versions[0].x"`, "Remove it, or correct"},
		{"a field twice", replace("scope:", "scope: Cluster\n  scope:"), `8:1: ` + top + `key "scope" already set in map`, ""},
		{"a value of another type", replace("served: true", "served: 'yes'"), `10:16: ` + top + `spec.versions[0].served: json: cannot unmarshal string into Go value of type bool`, ""},
		{"a text for the items", with("a: {type: array,\n items: text}"), `15:10: ` + at + `.properties[a].items: Required value: must be specified`, "Add items"},
		{"an integer with a fraction in JSON", strings.Replace(asJSON(with("a: {type: string, maxLength: 3}")), `h":3`, `h":3.0`, 1), `1:280: ` + at + `.properties[a].maxLength: json: cannot unmarshal number 3.0 into Go value of type int64`, ""},
		{"no time", replace("metadata:", "metadata:\n  creationTimestamp: yesterday"), `4:3: ` + top + `metadata.creationTimestamp: parsing time`, ""},
		{"no base64", replace("scope:", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.b',\n    caBundle: '?'}}}\n  scope:"), `8:5: ` + top + `spec.conversion.webhook.clientConfig.caBundle: illegal base64`, ""},
		{"another scope", replace("Cluster", "World"), `7:3: ` + top + `spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"`, ""},
		{"no kind", replace("kind: Apple}", "kind: ''}"), `8:27: ` + top + `spec.names.kind: Required value`, ""},
		{"no storage version", replace("storage: true", "storage: false"), `9:3: ` + top + `spec.versions: Invalid value: must have exactly one version marked as storage version`, ""},
		{"a version that is no name", replace("name: v1,", "name: V1,"), `10:6: ` + top + `spec.versions[0].name: Invalid value: "V1": a DNS-1035 label must consist of lower case alphanumeric`, ""},
		{"no schema", replace("openAPIV3Schema:\n        {type: object}", ""), `11:6: ` + top + `spec.versions[0].schema.openAPIV3Schema: Required value`, "Add a schema"},
		{"a protected group", strings.ReplaceAll(tiny, "example.com", "example.k8s.io"), `3:1: apples.example.k8s.io: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval`, "take another group"},
		{"a webhook without address", replace("scope:", "conversion: {strategy: Webhook}\n  scope:"), `7:3: ` + top + `spec.conversion.webhook.clientConfig: Required value: required when strategy is set to Webhook`, ""},
		{"a webhook without versions", replace("scope:", "conversion:\n    strategy: Webhook\n    webhook: {clientConfig: {url: 'https://a.b'}}\n  scope:"), `9:5: ` + top + `spec.conversion.webhook.conversionReviewVersions: Required value`, ""},
		{"preserveUnknownFields", replace("scope:", "preserveUnknownFields: true\n  scope:"), `7:3: ` + top + `spec.preserveUnknownFields: Invalid value: true: cannot set to true`, "Set it to false"},

		{"an array without items", with("a: {type: array}"), `14:9: ` + at + `.properties[a].items: Required value: must be specified`, "Add items"},
		{"a name with dots and brackets", with("a.b: {type: string},\n'a]b[0].c': {}"), `15:9: ` + at + `.properties[a]b[0].c].type: Required value: must not be empty for specified object fields`, "Add a type"},
		{"a field in a composition alone", withSchema("{type: object,\noneOf: [{required: [a]}, {properties: {a: {minLength: 1}}}]}"), `12:7: ` + at + `.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.oneOf[1].properties[a]`, "Specify the field"},
		{"a number or a name", with("port: {anyOf: [{type: integer},\n  {type: string},\n  {type: boolean}]}"), `15:12: ` + at + `.properties[port].anyOf[1].type: Forbidden: must be empty to be structural`, "x-kubernetes-int-or-string"},
		{"metadata in a composition", withSchema("{type: object, properties: {metadata: {type: object}}, anyOf: [\n{properties: {metadata: {minProperties: 1}}}]}"), `14:23: ` + at + `.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context`, "only name and generateName"},
		{"both kinds of fields", with("a: {type: object,\n properties: {b: {type: string}},\n additionalProperties: {type: string}}"), `16:10: ` + at + `.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`, "Keep one of the two"},
		{"unique items", with("a: {type: array, items: {type: string},\n uniqueItems: true}"), `15:10: ` + at + `.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since`, "x-kubernetes-list-type: set"},
		{"a reference", with("a: {\n $ref: '#/x'}"), `15:10: ` + at + `.properties[a].$ref: Forbidden: $ref is not supported`, "Write the schema out"},
		{"a bad pattern", with("a: {type: string,\n pattern: '(?=a)'}"), `15:10: ` + at + `.properties[a].pattern: Invalid value: "(?=a)": must be a valid regular expression`, "RE2"},
		{"a bad default", with("a: {type: string, enum: [b],\n default: c}"), `15:10: ` + at + `.properties[a].default: Unsupported value: "c": supported values: "b"`, "Give a default"},
		{"a bad default within one", with("a: {type: object, properties: {b: {type: integer}}, default: {\n b: c}}"), `15:10: ` + at + `.properties[a].default.b: Invalid value: "string": `, "Give a default"},
		{"a default that is pruned", with("a: {type: object,\n default: {b: c}}"), `15:10: ` + at + `.properties[a].default: Invalid value: {"b":"c"}: must not have unknown fields`, "Specify these fields"},
		{"a default in metadata", with("metadata: {type: object, properties: {name: {type: string,\n default: x}}}"), `15:10: ` + at + `.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`, "Remove it"},
		{"a key that may be missing", with("a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {\n k: {type: string}}}}"), `15:10: ` + at + `.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys`, "Add the key to required"},

		{"a rule that does not compile", with("a: {type: object, x-kubernetes-validations: [\n {rule: 'self.x > 1'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:5: undefined field 'x'`, "correct the name"},
		{"a costly rule", with("a: {type: array, items: {type: string}, x-kubernetes-validations: [\n {rule: 'self.all(x, self.all(y, x != y))'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x`, "maxItems of lists"},
		{"a global matches", with("a: {type: array, items: {type: string}, x-kubernetes-validations: [\n {rule: 'self.all(x, matches(x, \"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\"))'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x`, "before 1.37"},
		{"rules that cost too much together", costly, `12:7: ` + at + `: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget`, "Lower the cost of the rules"},
		{"a rule about the past of a list", with("a: {type: array, maxItems: 3, items: {type: string, x-kubernetes-validations: [\n {rule: self == oldSelf}]}}"), `15:11: ` + at + `.properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation`, "Make the list around it a map"},

		{"a column of another type", replace("name: v1,", "name: v1, additionalPrinterColumns: [{name: A, jsonPath: .a,\n     type: text}],"), `11:6: ` + top + `spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string`, ""},
		{"a column without a path", replace("name: v1,", "name: v1, additionalPrinterColumns: [{name: A, type: string,\n     jsonPath: a}],"), `11:6: ` + top + `spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "a": must be a simple json path starting with .`, ""},
		{"a selectable field that is not there", replace("name: v1,", "name: v1, selectableFields: [{\n     jsonPath: .spec.a}],"), `11:6: ` + top + `spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec.a": is an invalid path`, "Give the path of a field"},
		{"a scale without paths", replace("name: v1,", "name: v1, subresources: {scale: {\n     specReplicasPath: .a, statusReplicasPath: .status.a}},"), `11:6: ` + top + `spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec`, ""},
		{"a field twice in JSON", strings.Replace(asJSON(tiny), `"group":`, `"group":"x","group":`, 1), "1:124: " + top + `spec.group: duplicate field "spec.group"`, ""},
		{"a webhook, and unknown fields", replace("scope:", "preserveUnknownFields: true\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.b'}}}\n  scope:"), `8:16: ` + top + `spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true`, "Set spec.preserveUnknownFields: false"},
		{"an address for nothing", replace("scope:", "conversion: {strategy: None, webhook: {\n    conversionReviewVersions: [v1]}}\n  scope:"), `8:5: ` + top + `spec.conversion.webhook.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook`, ""},

		{"patterns of names", with("a: {type: object,\n patternProperties: {b: {type: string}}}"), `15:10: ` + at + `.properties[a].patternProperties: Forbidden: patternProperties is not supported`, "Use additionalProperties"},
		{"a set of granular objects", with("a: {type: array, x-kubernetes-list-type: set,\n items: {type: object}}"), `15:10: ` + at + `.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`, "Make the list a map"},
		{"metadata with more than a name", with("metadata: {type: object, properties: {labels: {type: object}}}"), `14:9: ` + at + `.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`, "only name and generateName"},

		{"a rule about what is not there", with("a: {type: object, x-kubernetes-validations: [\n {rule: 'x > 1'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'`, "through self"},

		{"a port in another order", with("port: {x-kubernetes-int-or-string: true, anyOf: [\n  {type: string}, {type: integer}]}"), `15:12: ` + at + `.properties[port].anyOf[0].type: Forbidden: must be empty to be structural`, "in this order"},
		{"a name that YAML takes for false", with("a: {type: object, properties: {n: {type: integer}}, x-kubernetes-validations: [\n {rule: self.n > 1}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:5: undefined field 'n'`, "in quotes"},
		{"a name that YAML takes for true", with("a: {type: object, properties: {y: {type: integer}}, x-kubernetes-validations: [\n {rule: self.y > 1}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:5: undefined field 'y'`, "in quotes"},
		{"a rule about labels", withSchema("{type: object, x-kubernetes-validations: [\n {rule: self.metadata.labels.size() > 0}]}"), `14:11: ` + at + `.x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:14: undefined field 'labels'`, "generateName of metadata"},
		{"a function that there is not", with("a: {type: string, x-kubernetes-validations: [\n {rule: self.has('x')}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:9: undeclared reference to 'has'`, "Correct the name"},
		{"a message that is a number", with("a: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 1,\n messageExpression: self.size}]}"), `15:10: ` + at + `.properties[a].x-kubernetes-validations[0].messageExpression: Invalid value: messageExpression must evaluate to a string`, "Format the value"},
		{"a costly message", with("a: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 1,\n messageExpression: '\"at most \" + string(self.size)'}]}"), `15:10: ` + at + `.properties[a].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget`, "in one format"},
		{"a costly message of a list", with("a: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: self.size() > 1,\n messageExpression: '\"not \" + self.join(\",\")'}]}"), `15:10: ` + at + `.properties[a].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget`, "in one format"},
		{"a rule about text that it makes", with("a: {type: object, properties: {name: {type: string, maxLength: 9}, size: {type: integer}}, x-kubernetes-validations: [\n {rule: 'self.name == \"a-\" + string(self.size)'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget`, "in one format"},
		{"a rule that searches text that it makes", with("a: {type: object, properties: {name: {type: string, maxLength: 9}, size: {type: integer}}, x-kubernetes-validations: [\n {rule: self.name.endsWith(string(self.size))}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget`, "do not search it"},

		{"a column with an empty path", replace("name: v1,", "name: v1, additionalPrinterColumns: [{name: A, type: string}],"), `10:43: ` + top + `spec.versions[0].additionalPrinterColumns[0].jsonPath: Required value`, ""},
		{"a scale with another selector", replace("name: v1,", "name: v1, subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a,\n     labelSelectorPath: .a}},"), `11:6: ` + top + `spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: ".a": should be a json path under either .spec or .status`, ""},
		{"a path below a map of anything", with("a: {type: object, additionalProperties: true, x-kubernetes-validations: [\n {rule: 'true', fieldPath: .a.b}]}"), `1:1: ` + top + `the server's validation panics: `, "Give a path"},

		{"a format that is unknown", with("a: {type: string,\n format: date_time}"), `15:10: warning: ` + at + `.properties[a].format: unrecognized format "date_time"`, "the server ignores this format"},
		{"a set of objects", with("a: {type: array, items: {type: object, x-kubernetes-map-type: atomic},\n x-kubernetes-list-type: set}"), `15:10: warning: ` + at + `.properties[a].x-kubernetes-list-type: x-kubernetes-list-type: set for items of type "object" is not supported`, "Make the list a map"},
		{"a schema too strict for its status", strings.Replace(withSchema("{type: object,\nminProperties: 1}"), "name: v1,", "name: v1, subresources: {status: {}},", 1), `12:7: ` + at + `: Invalid value: only [Description Type`, "Move what is at the root"},
	}
}

// Each fault says where it is and how to fix it.
func TestCheck_EachFault(t *testing.T) {
	for _, test := range problemCases() {
		t.Run(test.name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			expect.NoError(t, err)
			want := strings.Replace(test.want, ": spec.validation", ": spec.versions[0].schema", 1)
			for _, f := range found {
				if strings.Contains(message(f.String()), message(want)) {
					if !strings.HasPrefix(f.String(), want) {
						t.Errorf("got %s, want %s", f, want)
					}
					if !strings.Contains(f.Advice, test.advice) {
						t.Errorf("the advice is %q, want %q", f.Advice, test.advice)
					}
					return
				}
			}
			t.Errorf("got %q, want %s", found, want)
		})
	}
}

// All values of another type are found at once.
func TestCheck_ValuesOfAnotherType(t *testing.T) {
	text := withSchema(`{
type: object,
properties: {
  a: {type: string,
    description: 5,
    maxLength: "5"},
  list: {type: array,
    items: {
      type: [string, "null"],
      additionalProperties: yes please}},
  m: {type: object,
    additionalProperties: {
      required: status,
      enum: x,
      bogus: 5}},
  o: {type: object, bogus: 5,
    properties: [a]}},
not: 3}`)
	text = strings.Replace(text, "served: true,", "served: 1, subresources: {status: true},", 1)
	text = strings.Replace(text, "metadata:\n", "metadata:\n  creationTimestamp: yesterday\n  labels:\n    1.5: 2.5\n", 1)
	text += "\nlabels: 5\n" // a field of metadata, which a definition itself does not have
	const at = "apples.example.com: spec.versions[0].schema.openAPIV3Schema"
	const wrong = "json: cannot unmarshal "
	want := []string{
		`4:3: apples.example.com: metadata.creationTimestamp: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		"6:5: apples.example.com: metadata.labels[1.5]: " + wrong + "number into Go value of type string",
		"13:42: apples.example.com: spec.versions[0].subresources.status: " + wrong + "bool into Go value of type v1.CustomResourceSubresourceStatus",
		"20:13: " + at + ".properties[a].description: " + wrong + "number into Go value of type string",
		"21:13: " + at + ".properties[a].maxLength: " + wrong + "string into Go value of type int64",
		"24:15: " + at + ".properties[list].items.type: " + wrong + "array into Go value of type string",
		"25:15: " + at + ".properties[list].items.additionalProperties: boolean or JSON schema expected",
		"28:15: " + at + ".properties[m].additionalProperties.required: " + wrong + "string into Go value of type []string",
		"29:15: " + at + ".properties[m].additionalProperties.enum: " + wrong + "string into Go value of type []v1.JSON",
		`31:29: ` + at + `.properties.o.bogus: unknown field "spec.versions[0].schema.openAPIV3Schema.properties.o.bogus"`,
		"32:13: " + at + ".properties[o].properties: " + wrong + "array into Go value of type map[string]v1.JSONSchemaProps",
		"33:9: " + at + ".not: " + wrong + "number into Go value of type v1.JSONSchemaProps",
		`35:1: apples.example.com: labels: unknown field "labels"`,
	}
	want = slices.Insert(want, 2, "13:16: apples.example.com: spec.versions[0].served: "+wrong+"number into Go value of type bool")
	if diff := cmp.Diff(want, problems(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err := schema.Check([]byte(`{"kind":"List","apiVersion":"v1","items":[` + asJSON(text) + "]}"))
	if err != nil || len(found) != len(want) {
		t.Errorf("a List: got %v and %q, want %d problems", err, found, len(want))
	}
}

func TestNew_WhereTheServerPanics(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.Unmarshal([]byte(withSchema(`{type: object, properties: {
a: {type: object, additionalProperties: true, x-kubernetes-validations: [{rule: 'true', fieldPath: .a.b}]}}}`)), crd))
	_, err := schema.New(crd)
	expect.ErrorContains(t, err, "the server's validation panics")
}

// A definition with a warning can be used, and the warning says that it is one.
func TestCheck_Warnings(t *testing.T) {
	text := withSchema(`{type: object, properties: {
a: {type: string, format: date_time},
b: {type: string, format: date-time}}}`)
	found, err := schema.Check([]byte(text))
	if err != nil || len(found) != 1 || !found[0].Warning || found[0].Advice == "" {
		t.Errorf("got %q and %v, want a warning", found, err)
	}
	if _, err := schema.Parse([]byte(text)); err != nil {
		t.Error(err)
	}
}

// A name may look like the path of a version that there is not.
func TestCheck_FieldCalledLikeAVersion(t *testing.T) {
	text := strings.Replace(withSchema("{type: object}"), "  versions:", "  'versions[-1]': {}\n  'versions[9]': {}\n  versions:", 1)
	want := []string{
		`9:3: apples.example.com: spec.versions[-1]: unknown field "spec.versions[-1]"`,
		`10:3: apples.example.com: spec.versions[9]: unknown field "spec.versions[9]"`,
	}
	if diff := cmp.Diff(want, problems(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Check sees no more than the server.
// Rule 2 is checked at the root alone, and what is unknown below items is not seen.
func TestCheck_NoMoreThanTheServer(t *testing.T) {
	text := withSchema(`{type: object, properties: {
spec: {type: object, anyOf: [{properties: {nowhere: {minLength: 1}}}]},
list: {type: array, items: {type: string, bogus: 1}},
map: {type: object, additionalProperties: {type: string, bogus: 1}}}}`)
	if got := problems(t, text); got != nil {
		t.Errorf("got %q", got)
	}
	text = withSchema("{type: object, anyOf: [{properties: {nowhere: {minLength: 1}}}], bogus: 1}")
	if got := problems(t, text); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestCheck_FileWithoutDefinitions(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n---\n", "null", "{apiVersion: v1, kind: List, items: []}"} {
		found, err := schema.Check([]byte(text))
		if err == nil || err.Error() != "schema: no CustomResourceDefinition found" || found != nil {
			t.Errorf("%q: got %v and %v", text, found, err)
		}
		if definitions, err := schema.ParseAll([]byte(text)); err != nil || len(definitions) > 0 {
			t.Errorf("%q: ParseAll: %v and %v", text, definitions, err)
		}
	}
}

// message is a problem without its place.
func message(problem string) string {
	_, rest, _ := strings.Cut(problem, ": ")
	return rest
}

// costly has many rules, each of which is just cheap enough.
var costly = func() string {
	var properties []string
	for i := range 30 {
		properties = append(properties, fmt.Sprintf("a%d: {type: array, maxItems: 60, items: {type: string, maxLength: 60}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, self.all(z, x != y || x != z)))'}]}", i))
	}
	return withSchema("{type: object, properties: {" + strings.Join(properties, ",\n") + "}}")
}()

// A part that all versions share has its faults in each.
func TestCheck_SharedByAllVersions(t *testing.T) {
	text := strings.Replace(withSchema("{}"), "  versions:\n", `  versions:
  - {name: v1beta1, served: true, storage: false, schema: {
     openAPIV3Schema: {}}}
`, 1)
	want := []string{
		"11:6: apples.example.com: spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root",
		"14:7: apples.example.com: spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root",
	}
	if diff := cmp.Diff(want, problems(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err := schema.Check([]byte(text))
	expect.NoError(t, err)
	if got := []string{found[0].Version, found[1].Version}; !cmp.Equal(got, []string{"v1beta1", "v1"}) {
		t.Errorf("the versions are %s", got)
	}
}

// Lines are those of the file.
func TestCheck_Lines(t *testing.T) {
	bad := withSchema("{}")
	// YAML has no surrogates. Where a field is in such JSON is not found.
	notYAML := strings.Replace(indented(bad), `"metadata": {`, `"metadata": {"annotations": {"a": "\ud83d\ude00"},`, 1)
	indent := func(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
	for name, test := range map[string]struct {
		text string
		want []int
	}{
		"documents":            {bad + "---\n# one more\n\n" + bad, []int{12, 28}},
		"carriage returns":     {strings.ReplaceAll(bad+"---\n"+bad, "\n", "\r\n"), []int{12, 26}},
		"a byte order mark":    {"\uFEFF" + bad, []int{12}},
		"JSON on one line":     {asJSON(bad) + "\n--- " + asJSON(bad) + "\n", []int{1, 2}},
		"indented JSON":        {indented(bad) + "---\n" + indented(bad), linesWith("openAPIV3Schema", indented(bad)+"---\n"+indented(bad))},
		"JSON that no YAML is": {"\n" + notYAML, []int{1}},
		"a List of JSON":       {`{"kind":"List","apiVersion":"v1","items":[` + "\n" + asJSON(bad) + ",\n" + asJSON(bad) + "]}", []int{2, 3}},
		"a List":               {"apiVersion: v1\nkind: List\nitems:\n- " + indent(bad) + "\n- " + indent(bad), []int{15, 29}},
		"anchors and aliases":  {strings.NewReplacer("schema: {\n", "schema: &a {\n", "  versions:\n", "  versions:\n").Replace(bad) + "  - {name: v2, served: true, storage: false, schema: *a}\n", []int{12, 12}},
		"merged mappings":      {strings.Replace(bad, "  - {name: v1,", "  - {<<: {}, name: v1,", 1), []int{12}},
		"old definitions":      {oldDefinition, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			expect.NoError(t, err)
			var lines []int
			for _, f := range found {
				lines = append(lines, f.Line)
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, found)
			}
		})
	}
}

// A document that is not a definition is an error beside the faults of others.
func TestCheck_NoDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		problems   int
	}{
		"another kind":  {withSchema("{}") + "---\napiVersion: v1\nkind: Service\n", `schema: the document of line 14: the kind is "Service" of "v1": want CustomResourceDefinition`, 1},
		"no YAML":       {"a: b: c\n---\n" + withSchema("{}"), "schema: the document of line 1: ", 1},
		"a large one":   {withSchema("{}") + "  # \n  conversion: {strategy: " + strings.Repeat("x", 3<<20) + "}", "the limit is 3145728", 0},
		"wrong in each": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}, {apiVersion: v1, kind: B}]}", `"B" of "v1"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) || len(found) != test.problems {
				t.Errorf("got %v and %s, want %d problems and %s", err, found, test.problems, test.want)
			}
		})
	}
}

// The server's answer for a definition and that of Check for its file are the same.
func TestCheck_SaysWhatTheServerSays(t *testing.T) {
	for name, text := range refused(t) {
		t.Run(name, func(t *testing.T) {
			crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, text)
			causes := 0
			if _, err := schema.New(crd); err != nil {
				causes = 1 // a crash, of which there is no status
				if status := apierrors.APIStatus(nil); errors.As(err, &status) {
					causes = len(status.Status().Details.Causes)
				}
			}
			if got := problems(t, text); len(got) != causes {
				t.Errorf("the server has %d causes, Check has %q", causes, got)
			}
		})
	}
}

func TestCheck_GoodDefinitions(t *testing.T) {
	for _, file := range []string{"testdata/pizza.yaml", "testdata/everything.yaml"} {
		data, err := os.ReadFile(file)
		expect.NoError(t, err)
		found, err := schema.Check(data)
		expect.NoError(t, err)
		for _, f := range found {
			if !f.Warning {
				t.Errorf("%s:%s", file, f)
			}
		}
	}
}

// lineBreak is what ends a line of YAML 1.1.
var lineBreak = regexp.MustCompile(`\r\n|[\r\n\x{85}\x{2028}\x{2029}]`)

// FuzzCheck checks that no bytes make it panic or dawdle, that lines are those of the file,
// and that what has no problems can be used.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(pizzaYAML(f)))
	f.Add([]byte(oldDefinition))
	f.Add([]byte(strings.ReplaceAll(withSchema("{}"), "\n", "\r")))
	f.Add([]byte("a: &a [*a]\n<<: {<<: [{b: c}]}"))
	f.Add([]byte(asJSON(oldDefinition) + "\n" + indented(withSchema("{}")) + "}"))
	f.Add([]byte("apiVersion: v1\nkind: List\nkind: List\nitems:\n- {a: 1, a: 2}\n"))
	for _, test := range problemCases() {
		if test.text != costly { // its mutations would take many times as long
			f.Add([]byte(test.text))
		}
	}
	f.Add([]byte(withSchema("{}") + "---\n" + withSchema("{}")))
	f.Add([]byte("{type: object, properties: {a: {pattern: b}}, not: 1, c: d}"))
	for _, text := range refused(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		soon(t, func() {
			lines := len(lineBreak.FindAll(data, -1)) + 1
			check := func(found []schema.Problem, err, parseErr error) {
				for _, problem := range found {
					if problem.Line < 1 || problem.Line > lines || problem.Column < 1 {
						t.Errorf("of %d lines: %s", lines, problem)
					}
				}
				refused := slices.ContainsFunc(found, func(f schema.Problem) bool { return !f.Warning })
				if parseErr != nil && !refused && err == nil {
					t.Errorf("no problems, but %v", parseErr)
				}
			}
			found, err := schema.Check(data)
			_, parseErr := schema.ParseAll(data)
			check(found, err, parseErr)
		})
	})
}

// A problem says where it is in the file, what the server says, and how to fix it.
func ExampleCheck() {
	problems, err := schema.Check([]byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          schedule:
            pattern: ^[0-9* ]*$
          days:
            type: array
            items: {type: string}
            uniqueItems: true
`))
	for _, f := range problems {
		fmt.Println(f)
		fmt.Println(f.Advice)
	}
	fmt.Println(err)
	// Output:
	// 17:11: crontabs.stable.example.com: spec.versions[0].schema.openAPIV3Schema.properties[schedule].type: Required value: must not be empty for specified object fields
	// Add a type: object, array, string, integer, number or boolean. To allow any value, add x-kubernetes-preserve-unknown-fields: true instead. To allow a number or a string, add x-kubernetes-int-or-string: true instead.
	// 22:13: crontabs.stable.example.com: spec.versions[0].schema.openAPIV3Schema.properties[days].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
	// Remove it. For a list of scalars, x-kubernetes-list-type: set does the same.
	// <nil>
}

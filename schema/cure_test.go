package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// cure is what an advice says to do, as pairs of old and new text. A list of them has the
// alternatives that the advice names.
type cure []string

// cures has the advice of each of problemCases, applied to its text.
var cures = map[string][]cure{
	"a version that servers of today do not have": {{"/v1beta1\n", "/v1\n"}},
	"a name that is another":                      {{"name: apple.", "name: apples."}},
	"an unknown field":                            {{"  scopes: x\n", ""}},
	"an unknown field in a version":               {{"     x: 1,", ""}},
	"a text for the items":                        {{"text", "{type: string}"}},
	"no schema":                                   {{"schema: {\n", "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}\n"}},
	"a protected group":                           {{"example.k8s.io", "example.com"}},
	"preserveUnknownFields":                       {{"preserveUnknownFields: true", "preserveUnknownFields: false", "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}"}},
	"an array without items":                      {{"array", "array, items: {type: string}"}},
	"a name with dots and brackets":               {{"c': {}", "c': {type: object}"}, {"c': {}", "c': {type: array, items: {type: string}}"}, {"c': {}", "c': {type: string}"}, {"c': {}", "c': {type: integer}"}, {"c': {}", "c': {type: number}"}, {"c': {}", "c': {type: boolean}"}, {"c': {}", "c': {x-kubernetes-preserve-unknown-fields: true}"}, {"c': {}", "c': {x-kubernetes-int-or-string: true}"}},
	"a field in a composition alone":              {{"{type: object,\n", "{type: object, properties: {a: {type: string}},\n"}},
	"a number or a name":                          {{"anyOf: [{type: integer},\n          {type: string},\n          {type: boolean}]", "x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]"}},
	"a port in another order":                     {{"{type: string}, {type: integer}", "{type: integer}, {type: string}"}},
	"metadata in a composition":                   {{"properties: {metadata: {minProperties: 1}}", ""}},
	"both kinds of fields":                        {{"additionalProperties: {type: string}", ""}, {"properties: {b: {type: string}},", ""}, {"additionalProperties: {type: string}", "x-kubernetes-preserve-unknown-fields: true"}},
	"unique items":                                {{"uniqueItems: true", ""}, {"uniqueItems: true", "x-kubernetes-list-type: set"}},
	"a reference":                                 {{"$ref: '#/x'", "type: string"}},
	"a bad pattern":                               {{"(?=a)", "^a"}},
	"a bad default":                               {{"default: c", "default: b"}},
	"a bad default within one":                    {{"b: c}", "b: 1}"}},
	"a default that is pruned":                    {{"a: {type: object", "a: {type: object, properties: {b: {type: string}}"}, {"{b: c}", "{}"}},
	"a default in metadata":                       {{",\n         default: x", ""}},
	"a key that may be missing":                   {{"{type: object, properties: {\n", "{type: object, required: [k], properties: {\n"}, {"k: {type: string", "k: {type: string, default: a"}},
	"a rule that does not compile":                {{"a: {type: object", "a: {type: object, properties: {x: {type: integer}}"}, {"a: {type: object", "a: {type: object, properties: {a-b: {type: integer}}", "self.x", "self.a__dash__b"}},
	"a costly rule":                               {{"a: {type: array, items: {type: string}", "a: {type: array, maxItems: 10, items: {type: string, maxLength: 10}"}},
	"a global matches":                            {{"a: {type: array, items: {type: string}", "a: {type: array, maxItems: 10, items: {type: string, maxLength: 10}"}},
	"rules that cost too much together":           {{"maxItems: 60", "maxItems: 6"}},
	"a rule about the past of a list":             {{"items: {type: string, x-kubernetes-validations: [\n         {rule: self == oldSelf}]}", "items: {type: string}, x-kubernetes-validations: [{rule: self == oldSelf}]"}, {"items: {type: string,", "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, maxLength: 5}},"}},
	"a selectable field that is not there":        {{"{type: object}", "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}"}},
	"a webhook, and unknown fields":               {{"preserveUnknownFields: true", "preserveUnknownFields: false"}},
	"patterns of names":                           {{"patternProperties: {b: {type: string}}", "additionalProperties: {type: string}, x-kubernetes-validations: [{rule: 'self.all(k, k.matches(\"b\"))'}]"}},
	"a set of granular objects":                   {{"x-kubernetes-list-type: set,\n         items: {type: object}", "x-kubernetes-list-type: atomic, items: {type: object}"}, {"set,\n         items: {type: object}", "map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}"}},
	"metadata with more than a name":              {{"labels: {type: object}", ""}, {"labels: {type: object}", "name: {type: string, pattern: ^a}, generateName: {type: string, maxLength: 9}"}},
	"a name that YAML takes for false":            {{"{n:", "{'n':"}},
	"a name that YAML takes for true":             {{"{y:", "{'y':"}},
	"a rule about labels":                         {{"labels.size()", "name.size()"}, {"labels.size()", "generateName.size()"}},
	"a function that there is not":                {{"has(", "contains("}},
	"a rule about what is not there":              {{"a: {type: object", "a: {type: object, properties: {x: {type: integer}}", "x > 1", "has(self.x) && self.x > 1"}},
	"a message that is a number":                  {{"messageExpression: self.size", `messageExpression: '"%d".format([self.size])'`}},
	"a costly message":                            {{`"at most " + string(self.size)`, `"at most %d".format([self.size])`}},
	"a costly message of a list":                  {{`"not " + self.join(",")`, `"not %s".format([self])`}},
	"a rule about text that it makes":             {{`"a-" + string(self.size)`, `"a-%d".format([self.size])`}},
	"a rule that searches text that it makes":     {{"self.name.endsWith(string(self.size))", "self.name == string(self.size)"}},
	"a path below a map of anything":              {{"fieldPath: .a.b", "fieldPath: .c"}},
	"a format that is unknown":                    {{",\n         format: date_time", ""}, {"date_time", "date-time"}, {"date_time", "date"}, {"date_time", "duration"}, {"date_time", "email"}, {"date_time", "hostname"}, {"date_time", "ipv4"}, {"date_time", "ipv6"}, {"date_time", "cidr"}, {"date_time", "uri"}, {"date_time", "uuid"}, {"date_time", "byte"}, {"string", "integer", "date_time", "int32"}, {"string", "integer", "date_time", "int64"}, {"string", "number", "date_time", "float"}, {"string", "number", "date_time", "double"}},
	"a set of objects":                            {{"set}", "atomic}"}, {"items: {type: object, x-kubernetes-map-type: atomic}", "x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}", "set}", "map}"}},
	"a schema too strict for its status":          {{"minProperties: 1", "properties: {spec: {type: object, minProperties: 1}}"}, {"minProperties: 1", "x-kubernetes-validations: [{rule: self.metadata.name != ''}]"}},
}

// eachCure calls f with each definition of problemCases to which its advice was applied.
func eachCure(t *testing.T, f func(t *testing.T, text string)) {
	for _, test := range problemCases() {
		all := cures[test.name]
		if (len(all) > 0) != (test.advice != "") {
			t.Errorf("%s: %d cures, and the advice %q", test.name, len(all), test.advice)
		}
		for i, cure := range all {
			t.Run(fmt.Sprintf("%s/%d", test.name, i), func(t *testing.T) {
				text := strings.NewReplacer(cure...).Replace(test.text)
				if text == test.text {
					t.Fatalf("%q is not in %s", cure, text)
				}
				f(t, text)
			})
		}
	}
}

func TestAdvice_RemovesTheFault(t *testing.T) {
	eachCure(t, func(t *testing.T, text string) {
		found, err := schema.Check([]byte(text))
		expect.NoError(t, err)
		for _, f := range found {
			t.Errorf("%s\n%s", f, text)
		}
	})
}

func TestAdvice_IsTakenByTheServer(t *testing.T) {
	cp := controlplane.Shared(t)
	config := rest.CopyConfig(cp.Config())
	eachCure(t, func(t *testing.T, text string) {
		warnings := recorded{}
		config.WarningHandlerWithContext = warnings
		client, err := apiextensionsclient.NewForConfig(config)
		expect.NoError(t, err)
		body, err := yaml.YAMLToJSON([]byte(text))
		expect.NoError(t, err)
		err = client.ApiextensionsV1().RESTClient().Post().Resource("customresourcedefinitions").
			Param("dryRun", "All").Param("fieldValidation", "Strict").
			SetHeader("Content-Type", "application/json").Body(bytes.NewReader(body)).Do(t.Context()).Error()
		if err != nil || len(warnings) > 0 {
			t.Errorf("%v, %v\n%s", err, warnings, text)
		}
	})
}

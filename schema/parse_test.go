package schema_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

func pizzaYAML(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/pizza.yaml")
	expect.NoError(t, err)
	return string(data)
}

// tiny returns the text of a small definition.
func tiny(plural string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: %[1]s, kind: %[2]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, strings.ToUpper(plural[:1])+plural[1:])
}

// Definitions come in many forms.
func TestParse_ManyForms(t *testing.T) {
	a, b := tiny("apples"), tiny("bananas")
	asJSON := func(text string) string {
		j, err := yaml.YAMLToJSON([]byte(text))
		expect.NoError(t, err)
		return string(j)
	}
	indent := func(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
	for name, text := range map[string]string{
		"YAML documents":            a + "---\n" + b,
		"comments and empty ones":   "\uFEFF# apples\n---\n" + a + "--- # bananas\n---\n\n# none\n---\n" + b + "...\n# end\n",
		"carriage returns":          strings.ReplaceAll(a+"---\n"+b, "\n", "\r\n"),
		"JSON documents":            "--- " + asJSON(a) + "\n---\n" + asJSON(b),
		"a List":                    "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- " + indent(a) + "\n- " + indent(b),
		"a List of JSON":            `{"kind":"List","apiVersion":"v1","items":[` + asJSON(a) + `,` + asJSON(b) + `]}`,
		"a null, and an empty List": "null\n---\n{apiVersion: v1, kind: List, items: []}\n---\n" + a + "---\n" + b,
	} {
		t.Run(name, func(t *testing.T) {
			definitions, err := schema.ParseAll([]byte(text))
			expect.NoError(t, err)
			var kinds []string
			for _, d := range definitions {
				kinds = append(kinds, d.GroupKind().String())
			}
			if diff := cmp.Diff([]string{"Apples.example.com", "Bananas.example.com"}, kinds); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Text that is not a definition is an error that says where.
func TestParse_NoDefinition(t *testing.T) {
	a := tiny("apples")
	for _, test := range []struct{ name, text, want string }{
		{"none", "# nothing", "schema: found 0 CustomResourceDefinitions: want one"},
		{"several", a + "---\n" + tiny("bananas"), "schema: found 2 CustomResourceDefinitions: want one"},
		{"another kind", a + "---\n\n# a service\napiVersion: v1\nkind: Service\n", `schema: the document of line 10: the kind is "Service" of "v1": want CustomResourceDefinition of apiextensions.k8s.io/v1 or apiextensions.k8s.io/v1beta1`},
		{"a List with another kind", "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List}]}", `schema: items[0] of line 1: the kind is "List" of "v1": want`},
		{"an unknown field", strings.Replace(a, "scope:", "scopes: x\n  scope:", 1), `schema: the document of line 1: unknown field "spec.scopes"`},
		{"a field twice", strings.Replace(a, "scope:", "scope: x\n  scope:", 1), `key "scope" already set in map`},
		{"a field twice in JSON", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"group":"a","group":"b"}}`, `duplicate field "spec.group"`},
		{"no YAML", "a: b: c", "schema: the document of line 1: "},
		{"a scalar", "hello", "schema: the document of line 1: "},
		{"a list of scalars", "[1]", "schema: the document of line 1: "},
		{"too large a definition", a + "  conversion: {strategy: " + strings.Repeat("x", 3<<20) + "}", "the limit is 3145728"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.Parse([]byte(test.text))
			expect.ErrorContains(t, err, test.want)
		})
	}
}

// Text that follows a document and belongs to none is an error with its line.
// Nothing in a file is passed over in silence.
func TestParse_TextAfterADocument(t *testing.T) {
	a, b := asJSON(tiny("apples")), asJSON(tiny("bananas"))
	flow := "{" + strings.NewReplacer("\n  ", " ", "\n", ", ", "versions:", "versions: [", "  - {", "{").Replace(strings.TrimSpace(tiny("apples")))
	flow = strings.NewReplacer("spec:", "spec: {", "group: example.com", "group: example.com,", "scope: Cluster", "scope: Cluster,", "kind: Apples}", "kind: Apples},", "- {", "{").Replace(flow) + "]}}"
	for _, test := range []struct{ name, text, want string }{
		{"two values of JSON", a + "\n" + b, "schema: the document of line 1: unexpected content after the end of the YAML document"},
		{"what follows a mapping in braces", flow + "\nfoo: bar\n", "schema: the document of line 1: unexpected content after the end of the YAML document"},
		{"the same further down", tiny("apples") + "--- # bananas\n" + strings.ReplaceAll(flow, "apples", "bananas") + "\n\n  foo: bar\n", "schema: the document of line 10: unexpected content after the end of the YAML document"},
		{"what is indented less", "  " + strings.ReplaceAll(strings.TrimSpace(tiny("apples")), "\n", "\n  ") + "\nfoo: bar\n", "schema: the document of line 1: unexpected content after the end of the YAML document"},
		{"no YAML, further down", tiny("apples") + "---\na: b\nb: c: d\n", "schema: the document of line 10: line 12: mapping values are not allowed in this context"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseAll([]byte(test.text))
			if err == nil || err.Error() != test.want {
				t.Errorf("ParseAll: got %v, want %s", err, test.want)
			}
			if found, err := schema.Check([]byte(test.text)); err == nil || err.Error() != test.want || len(found) > 0 {
				t.Errorf("Check: got %v and %q, want %s", err, found, test.want)
			}
		})
	}
	// Blank text is empty.
	for _, text := range []string{a + "\n", a + " \t\r\n", flow + "\n# the end\n", flow + "\n...\n"} {
		if definitions, err := schema.ParseAll([]byte(text)); err != nil || len(definitions) != 1 {
			t.Errorf("%s: got %v and %v", text, definitions, err)
		}
	}
}

// Each error has a line of its own, which says what it is about.
func TestParse_ErrorsNameTheDocument(t *testing.T) {
	const no = `want CustomResourceDefinition of apiextensions.k8s.io/v1 or apiextensions.k8s.io/v1beta1`
	unknown := strings.NewReplacer("scope:", "scopes: x\n  scope:", "  versions:", "  version: v1\n  versions:").Replace(tiny("apples"))
	inList := "- " + strings.ReplaceAll(strings.TrimSpace(unknown), "\n", "\n  ") + "\n"
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"a List", "apiVersion: v1\nkind: List\nitems:\n" + inList + "- kind: Service\n  apiVersion: v1\n- 5\n" + inList, []string{
			`schema: items[0] of line 4: unknown field "spec.scopes"`,
			`schema: items[0] of line 4: unknown field "spec.version"`,
			`schema: items[1] of line 15: the kind is "Service" of "v1": ` + no,
			`schema: items[2] of line 17: the value is not an object`,
			`schema: items[3] of line 18: unknown field "spec.scopes"`,
			`schema: items[3] of line 18: unknown field "spec.version"`,
		}},
		{"a List of JSON", "{\n\"apiVersion\":\"v1\",\"kind\":\"List\",\n\"items\":[{\"kind\":\"A\"},\n\n" + asJSON(unknown) + "\n, null]}\n", []string{
			`schema: items[0] of line 3: the kind is "A" of "": ` + no,
			`schema: items[1] of line 5: unknown field "spec.scopes"`,
			`schema: items[1] of line 5: unknown field "spec.version"`,
			`schema: items[2] of line 6: the value is not an object`,
		}},
		{"names that are there twice", "# one\n---\napiVersion: v1\nkind: List\nkind: List\nitems:\n- {kind: A,\n   kind: B}\n- {kind: C}\n- {a: [],\n   a: [], kind: D}\n", []string{
			`schema: the document of line 2: line 5: key "kind" already set in map`,
			`schema: the document of line 2: line 8: key "kind" already set in map`,
			`schema: the document of line 2: line 11: key "a" already set in map`,
			`schema: items[0] of line 7: the kind is "B" of "": ` + no,
			`schema: items[1] of line 9: the kind is "C" of "": ` + no,
			`schema: items[2] of line 10: the kind is "D" of "": ` + no,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseAll([]byte(test.text))
			if diff := cmp.Diff(test.want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A definition that the server refuses is an error with every fault.
func TestParse_RefusedDefinition(t *testing.T) {
	text := strings.NewReplacer(
		"name: pizzas.restaurant", "name: pizza.restaurant",
		"maxItems: 10", "maxItems: 10\n                uniqueItems: true",
		"default: large", "default: huge",
		"self.size != 'small'", "self.sizes != 'small'",
		"known: {type: object,", "known: {",
	).Replace(pizzaYAML(t))
	_, err := schema.Parse([]byte(text))
	expect.ErrorContains(t, err,
		`CustomResourceDefinition.apiextensions.k8s.io "pizza.restaurant.example.com" is invalid: [`,
		`metadata.name: Invalid value: "pizza.restaurant.example.com": must be spec.names.plural+"."+spec.group`,
		`spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[toppings].uniqueItems: Forbidden`,
		`spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[anything].properties[known].type: Required value`,
	)
}

func TestNew_NilDefinition(t *testing.T) {
	if _, err := schema.New(nil); err == nil {
		t.Error("it is accepted")
	}
}

// New leaves the definition as it is.
func TestNew_LeavesTheDefinition(t *testing.T) {
	crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, pizzaYAML(t))
	before := crd.DeepCopy()
	_, err := schema.New(crd)
	expect.NoError(t, err)
	if diff := cmp.Diff(before, crd); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// Definitions of old, which no server takes any longer but some still have.
const oldDefinition = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: oldies.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: oldies, kind: Oldie}
  subresources: {status: {}}
  validation:
    openAPIV3Schema:
      properties:
        spec:
          properties:
            size: {type: integer, maximum: 3}
`

// Old definitions are served as they were.
func TestParse_OldDefinitions(t *testing.T) {
	d, err := schema.Parse([]byte(oldDefinition))
	expect.NoError(t, err)
	v := d.Version("v1")
	text := `{"apiVersion":"example.com/v1","kind":"Oldie","metadata":{"name":"o"},"other":null,"spec":{"size":4,"more":[{}]}}`
	o := object(t, text)
	if pruned := v.Prune(o); pruned != nil {
		t.Errorf("pruned %v", pruned)
	}
	v.Default(o)
	if diff := cmp.Diff(object(t, text), o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"spec.size: Invalid value: 4: spec.size in body should be less than or equal to 3"}
	if diff := cmp.Diff(want, messages(v.Validate(t.Context(), o))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The same with pruning needs a structural schema.
	pruning := strings.Replace(oldDefinition, "spec:\n", "spec:\n  preserveUnknownFields: false\n", 1)
	_, err = schema.Parse([]byte(pruning))
	expect.ErrorContains(t, err, "openAPIV3Schema.type: Required value")
	// A server that has it requires no more than v1beta1 did.
	existing := strings.NewReplacer("k8s.io/v1\n", "k8s.io/v1beta1\n", "  scope: Cluster\n", "  preserveUnknownFields: false\n").Replace(withSchema(
		"{type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [protocol], items: {type: object, properties: {protocol: {type: string}}}}}}"))
	d, err = schema.Parse([]byte(existing))
	expect.NoError(t, err)
	if pruned := d.Version("v1").Prune(object(t, `{"kind":"Apple","ports":[{"protocol":"TCP","a":1}]}`)); !slices.Equal(pruned, []string{"ports[0].a"}) {
		t.Errorf("pruned %q", pruned)
	}
	_, err = schema.New(d.CustomResourceDefinition())
	expect.ErrorContains(t, err, "properties[protocol].default: Required value")
	// And v1 has it too.
	v1 := strings.Replace(tiny("apples"), "spec:\n", "spec:\n  preserveUnknownFields: true\n", 1)
	d, err = schema.Parse([]byte(v1))
	expect.NoError(t, err)
	if pruned := d.Version("v1").Prune(object(t, `{"kind":"Apples","a":{"b":1}}`)); pruned != nil {
		t.Errorf("pruned %v", pruned)
	}
}

// Schemas that are the same in all versions are there in each.
func TestParse_SameSchemas(t *testing.T) {
	text := strings.Replace(tiny("apples"), "  versions:\n", `  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, 1)
	text = string(bytes.ReplaceAll([]byte(text), []byte("{type: object}"), []byte("{type: object, properties: {size: {type: integer}}}")))
	d, err := schema.Parse([]byte(text))
	expect.NoError(t, err)
	for _, v := range d.Versions() {
		if _, ok := d.Version(v).Structural().Properties["size"]; !ok {
			t.Errorf("%s has no schema", v)
		}
	}
}

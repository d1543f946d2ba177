package schema_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
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

// faults returns what Check says, line by line.
func faults(t testing.TB, text string) (all []string) {
	t.Helper()
	found, err := schema.Check([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		all = append(all, f.String())
	}
	return all
}

// The example of the documentation, with the violations that it lists.
func TestEachRuleOfStructuralSchemasHasItsNumberAndItsLine(t *testing.T) {
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
		"12:7: " + at + ".type: Required value: must not be empty at the root (rule 1 of structural schemas)",
		"14:9: " + at + ".properties[bar]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[bar] (rule 2 of structural schemas)",
		"15:11: " + at + ".properties[foo].type: Required value: must not be empty for specified object fields (rule 1 of structural schemas)",
		"17:11: " + at + ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified (rule 4 of structural schemas)",
		"27:16: " + at + ".anyOf[0].properties[bar].type: Forbidden: must be empty to be structural (rule 3 of structural schemas)",
		"30:12: " + at + ".anyOf[0].description: Forbidden: must be empty to be structural (rule 3 of structural schemas)",
	}
	if diff := cmp.Diff(want, faults(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEachFaultSaysWhereItIsAndHowToMendIt(t *testing.T) {
	tiny := withSchema("{type: object}")
	replace := func(old, new string) string { return strings.Replace(tiny, old, new, 1) }
	with := func(properties string) string {
		return withSchema("{type: object, properties: {\n" + properties + "}}")
	}
	const top = "apples.example.com: "
	const at = top + "spec.versions[0].schema.openAPIV3Schema"
	for _, test := range []struct {
		name, text, want, advice string
	}{
		{"a name that is another", replace("name: apples.", "name: apple."), `4:3: apple.example.com: metadata.name: Invalid value: "apple.example.com": must be spec.names.plural+"."+spec.group`, "Name the definition by its plural"},
		{"a group without a dot", strings.ReplaceAll(tiny, "example.com", "example"), `6:3: apples.example: spec.group: Invalid value: "example": should be a domain with at least one dot`, "Take a domain"},
		{"an unknown field", replace("scope:", "scopes: x\n  scope:"), `7:3: ` + top + `spec.scopes: unknown field "spec.scopes"`, "Remove it, or correct"},
		{"an unknown field in a version", replace("name: v1,", "name: v1,\n     x: 1,"), `11:6: ` + top + `spec.versions[0].x: unknown field "spec.versions[0].x"`, "Remove it, or correct"},
		{"a field twice", replace("scope:", "scope: Cluster\n  scope:"), `8:1: ` + top + `key "scope" already set in map`, "Remove one"},
		{"a value of another type", replace("served: true", "served: 'yes'"), `9:3: ` + top + `spec.versions.served: json: cannot unmarshal string into Go struct field CustomResourceDefinitionVersion.spec.versions.served of type bool`, "Give it a value of that type"},
		{"another scope", replace("Cluster", "World"), `7:3: ` + top + `spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"`, "Take Namespaced"},
		{"no kind", replace("kind: Apple}", "kind: ''}"), `8:27: ` + top + `spec.names.kind: Required value`, ""},
		{"a kind like its list", replace("kind: Apple}", "kind: Apple, listKind: Apple}"), `8:40: ` + top + `spec.names.listKind: Invalid value: "Apple": kind and listKind may not be the same`, "Leave it out"},
		{"no storage version", replace("storage: true", "storage: false"), `9:3: ` + top + `spec.versions: Invalid value: must have exactly one version marked as storage version`, "Set storage: true in one version"},
		{"the same version twice", replace("  versions:", "  versions:\n  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}"), `9:3: ` + top + `spec.versions: Invalid value: must contain unique version names`, "Rename"},
		{"a version that is no name", replace("name: v1,", "name: V1,"), `10:6: ` + top + `spec.versions[0].name: Invalid value: "V1": a DNS-1035 label must consist of lower case alphanumeric`, ""},
		{"no schema", replace("openAPIV3Schema:\n        {type: object}", ""), `11:6: ` + top + `spec.versions[0].schema.openAPIV3Schema: Required value`, "Add a schema"},
		{"a warning for nothing", replace("name: v1,", "name: v1, deprecationWarning: old,"), `10:16: ` + top + `spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions`, "Set deprecated"},
		{"a protected group", strings.ReplaceAll(tiny, "example.com", "example.k8s.io"), `3:1: apples.example.k8s.io: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval`, "take another group"},
		{"a webhook without address", replace("scope:", "conversion: {strategy: Webhook}\n  scope:"), `7:3: ` + top + `spec.conversion.webhook.clientConfig: Required value: required when strategy is set to Webhook`, "Set either service"},
		{"a webhook without versions", replace("scope:", "conversion:\n    strategy: Webhook\n    webhook: {clientConfig: {url: 'https://a.b'}}\n  scope:"), `9:5: ` + top + `spec.conversion.webhook.conversionReviewVersions: Required value`, "List the versions"},
		{"preserveUnknownFields", replace("scope:", "preserveUnknownFields: true\n  scope:"), `7:3: ` + top + `spec.preserveUnknownFields: Invalid value: true: cannot set to true`, "Remove it"},

		{"a root of another type", withSchema("{type: string}"), `13:10: ` + at + `.type: Invalid value: "string": must be object at the root`, "Set type: object"},
		{"an array without items", with("a: {type: array}"), `14:9: ` + at + `.properties[a].items: Required value: must be specified (rule 1 of structural schemas)`, "Add items"},
		{"a name with dots and brackets", with("a.b: {type: string},\n'a]b[0].c': {}"), `15:9: ` + at + `.properties[a]b[0].c].type: Required value: must not be empty for specified object fields (rule 1 of structural schemas)`, "Add a type"},
		{"a field in a composition alone", withSchema("{type: object,\noneOf: [{required: [a]}, {properties: {a: {minLength: 1}}}]}"), `12:7: ` + at + `.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.oneOf[1].properties[a] (rule 2 of structural schemas)`, "Specify the field"},
		{"a number or a name", with("port: {anyOf: [{type: integer},\n  {type: string},\n  {type: boolean}]}"), `15:12: ` + at + `.properties[port].anyOf[1].type: Forbidden: must be empty to be structural (rule 3 of structural schemas)`, "x-kubernetes-int-or-string"},
		{"metadata in a composition", withSchema("{type: object, properties: {metadata: {type: object}}, anyOf: [\n{properties: {metadata: {minProperties: 1}}}]}"), `14:23: ` + at + `.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context (rule 4 of structural schemas)`, "only name and generateName"},
		{"both kinds of fields", with("a: {type: object,\n properties: {b: {type: string}},\n additionalProperties: {type: string}}"), `16:10: ` + at + `.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`, "Keep one of both"},
		{"unique items", with("a: {type: array, items: {type: string},\n uniqueItems: true}"), `15:10: ` + at + `.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since`, "x-kubernetes-list-type: set"},
		{"a reference", with("a: {\n $ref: '#/x'}"), `15:10: ` + at + `.properties[a].$ref: Forbidden: $ref is not supported`, "Write the schema out"},
		{"another type", with("a: {\n type: int}"), `15:10: ` + at + `.properties[a].type: Unsupported value: "int": supported values: "array"`, "The types are"},
		{"a bad pattern", with("a: {type: string,\n pattern: '(?=a)'}"), `15:10: ` + at + `.properties[a].pattern: Invalid value: "(?=a)": must be a valid regular expression`, "RE2"},
		{"a bad default", with("a: {type: string, enum: [b],\n default: c}"), `15:10: ` + at + `.properties[a].default: Unsupported value: "c": supported values: "b"`, "Give a default"},
		{"a bad default within one", with("a: {type: object, properties: {b: {type: integer}}, default: {\n b: c}}"), `15:10: ` + at + `.properties[a].default.b: Invalid value: "string": `, "Give a default"},
		{"a default that is pruned", with("a: {type: object,\n default: {b: c}}"), `15:10: ` + at + `.properties[a].default: Invalid value: {"b":"c"}: must not have unknown fields`, "Specify these fields"},
		{"a default in metadata", with("metadata: {type: object, properties: {name: {type: string,\n default: x}}}"), `15:10: ` + at + `.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`, "Remove it"},
		{"a list map without keys", with("a: {type: array, items: {type: object},\n x-kubernetes-list-type: map}"), `14:9: ` + at + `.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty`, "List the fields"},
		{"a key that may be missing", with("a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {\n k: {type: string}}}}"), `15:10: ` + at + `.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys`, "Add the key to required"},

		{"a rule that does not compile", with("a: {type: object, x-kubernetes-validations: [\n {rule: 'self.x > 1'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: compilation failed: ERROR: <input>:1:5: undefined field 'x'`, "correct the name"},
		{"a rule that is no question", with("a: {type: string, x-kubernetes-validations: [\n {rule: 'self'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Invalid value: `, "true or false"},
		{"a costly rule", with("a: {type: array, items: {type: string}, x-kubernetes-validations: [\n {rule: 'self.all(x, self.all(y, x != y))'}]}"), `15:11: ` + at + `.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x`, "maxItems of lists"},
		{"rules that cost too much together", costly, `12:7: ` + at + `: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget`, "maxItems of lists"},
		{"a rule about the past of a list", with("a: {type: array, maxItems: 3, items: {type: string, x-kubernetes-validations: [\n {rule: self == oldSelf}]}}"), `15:11: ` + at + `.properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation`, "Make the list around it a map"},

		{"a column of another type", replace("name: v1,", "name: v1, additionalPrinterColumns: [{name: A, jsonPath: .a,\n     type: text}],"), `11:6: ` + top + `spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string`, "The types are boolean"},
		{"a column without a path", replace("name: v1,", "name: v1, additionalPrinterColumns: [{name: A, type: string,\n     jsonPath: a}],"), `11:6: ` + top + `spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "a": must be a simple json path starting with .`, "Begin with a dot"},
		{"a selectable field that is not there", replace("name: v1,", "name: v1, selectableFields: [{\n     jsonPath: .spec.a}],"), `11:6: ` + top + `spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec.a": is an invalid path`, "Give the path of a field"},
		{"a scale without paths", replace("name: v1,", "name: v1, subresources: {scale: {\n     specReplicasPath: .a, statusReplicasPath: .status.a}},"), `11:6: ` + top + `spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec`, "Give the path of an integer"},
		{"a schema too strict for its status", strings.Replace(withSchema("{type: object,\nminProperties: 1}"), "name: v1,", "name: v1, subresources: {status: {}},", 1), `12:7: ` + at + `: Invalid value: only [Description Type`, "Move what is at the root"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
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

// message is a fault without its place.
func message(fault string) string {
	_, rest, _ := strings.Cut(fault, ": ")
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

func TestWhatAllVersionsShareHasItsFaultsInEach(t *testing.T) {
	text := strings.Replace(withSchema("{}"), "  versions:\n", `  versions:
  - {name: v1beta1, served: true, storage: false, schema: {
     openAPIV3Schema: {}}}
`, 1)
	want := []string{
		"11:6: apples.example.com: spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root (rule 1 of structural schemas)",
		"14:7: apples.example.com: spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root (rule 1 of structural schemas)",
	}
	if diff := cmp.Diff(want, faults(t, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err := schema.Check([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{found[0].Version, found[1].Version}; !cmp.Equal(got, []string{"v1beta1", "v1"}) {
		t.Errorf("the versions are %s", got)
	}
}

func TestLinesAreThoseOfTheFile(t *testing.T) {
	bad := withSchema("{}")
	asJSON := func() string {
		j, err := yaml.YAMLToJSON([]byte(bad))
		if err != nil {
			t.Fatal(err)
		}
		return string(j)
	}()
	indent := func(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
	for name, test := range map[string]struct {
		text string
		want []int
	}{
		"documents":           {bad + "---\n# one more\n\n" + bad, []int{12, 28}},
		"carriage returns":    {strings.ReplaceAll(bad+"---\n"+bad, "\n", "\r\n"), []int{12, 26}},
		"a byte order mark":   {"\uFEFF" + bad, []int{12}},
		"JSON values":         {asJSON + "\n" + asJSON + "\n\n" + asJSON, []int{1, 2, 4}},
		"a List":              {"apiVersion: v1\nkind: List\nitems:\n- " + indent(bad) + "\n- " + indent(bad), []int{15, 29}},
		"anchors and aliases": {strings.NewReplacer("schema: {\n", "schema: &a {\n", "  versions:\n", "  versions:\n").Replace(bad) + "  - {name: v2, served: true, storage: false, schema: *a}\n", []int{12, 12}},
		"merged mappings":     {strings.Replace(bad, "  - {name: v1,", "  - {<<: {}, name: v1,", 1), []int{12}},
		"old definitions":     {oldDefinition, []int{4, 10, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
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

func TestWhatIsNoDefinitionIsAnErrorBesideTheFaultsOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		faults     int
	}{
		"another kind":  {withSchema("{}") + "---\napiVersion: v1\nkind: Service\n", `schema: document 2 (line 15): it is a "Service" of "v1", not a CustomResourceDefinition`, 1},
		"no YAML":       {"a: b: c\n---\n" + withSchema("{}"), "schema: document 1 (line 1): ", 1},
		"a scalar":      {"hello", "schema: document 1 (line 1): ", 0},
		"a list":        {"[1]", "schema: document 1 (line 1): ", 0},
		"too large":     {"# " + strings.Repeat("x", 64<<20), "the limit is 67108864", 0},
		"a large one":   {withSchema("{}") + "  # \n  conversion: {strategy: " + strings.Repeat("x", 3<<20) + "}", "the limit is 3145728", 0},
		"wrong in each": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}, {apiVersion: v1, kind: B}]}", `"B" of "v1"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := schema.Check([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) || len(found) != test.faults {
				t.Errorf("got %v and %s, want %d faults and %s", err, found, test.faults, test.want)
			}
		})
	}
}

// What the server says of a definition, and Check of its file, are the same.
func TestCheckSaysWhatTheServerSays(t *testing.T) {
	for name, text := range refused(t) {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(text), crd); err != nil {
				t.Fatal(err)
			}
			causes := 0
			if _, err := schema.New(crd); err != nil {
				causes = len(err.(apierrors.APIStatus).Status().Details.Causes)
			}
			if got := faults(t, text); len(got) != causes {
				t.Errorf("the server has %d causes, Check has %q", causes, got)
			}
		})
	}
}

func TestGoodDefinitionsHaveNoFaults(t *testing.T) {
	for _, file := range []string{"testdata/pizza.yaml", "testdata/everything.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := faults(t, string(data)); got != nil {
			t.Errorf("%s: %s", file, got)
		}
	}
}

// FuzzCheck checks that no bytes make it panic or dawdle, that lines are those of the file,
// and that what has no faults can be used.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(pizzaYAML(f)))
	f.Add([]byte(oldDefinition))
	f.Add([]byte("a: &a [*a]\n<<: {<<: [{b: c}]}"))
	f.Add([]byte(withSchema("{}") + "---\n" + withSchema("{}")))
	for _, text := range refused(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		soon(t, func() {
			found, err := schema.Check(data)
			lines := strings.Count(string(data), "\n") + 1
			for _, fault := range found {
				if fault.Line < 1 || fault.Line > lines || fault.Column < 1 {
					t.Errorf("of %d lines: %s", lines, fault)
				}
			}
			if _, parseErr := schema.ParseAll(data); parseErr != nil && len(found) == 0 && err == nil {
				t.Errorf("no faults, but %v", parseErr)
			}
		})
	})
}

// A fault says where it is in the file, what the server says, and how to mend it.
func ExampleCheck() {
	faults, err := schema.Check([]byte(`apiVersion: apiextensions.k8s.io/v1
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
	for _, f := range faults {
		fmt.Println(f)
		fmt.Println(f.Advice)
	}
	fmt.Println(err)
	// Output:
	// 17:11: crontabs.stable.example.com: spec.versions[0].schema.openAPIV3Schema.properties[schedule].type: Required value: must not be empty for specified object fields (rule 1 of structural schemas)
	// Add a type: object, array, string, integer, number or boolean. Where any value may be, add x-kubernetes-preserve-unknown-fields: true; where a number or a name, x-kubernetes-int-or-string: true.
	// 22:13: crontabs.stable.example.com: spec.versions[0].schema.openAPIV3Schema.properties[days].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
	// Remove it. x-kubernetes-list-type: set says the same of scalars.
	// <nil>
}

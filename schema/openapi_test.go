package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// The steps of a version are compared with a real server elsewhere. Those of its schema
// without the definition have to be the same.
func TestSchema_AgreesWithVersion(t *testing.T) {
	compared, updates := 0, 0
	for _, suite := range traps(t) {
		if suite.Past {
			continue // such a definition has none of the steps but validation
		}
		d, err := schema.New(suite.CRD)
		expect.NoError(t, err)
		for _, spec := range suite.CRD.Spec.Versions {
			text, err := json.Marshal(spec.Schema.OpenAPIV3Schema)
			expect.NoError(t, err)
			bare, err := schema.ParseSchema(text)
			expect.NoError(t, err)
			if diff := cmp.Diff(d.Version(spec.Name).Structural(), bare.Structural()); diff != "" {
				t.Errorf("%s: the structural schema (-version +schema):\n%s", suite.About, diff)
			}
			if spec.Subresources != nil && spec.Subresources.Scale != nil {
				continue // which validates more
			}
			object := func(from map[string]any) map[string]any {
				o := runtime.DeepCopyJSON(from)
				o["apiVersion"], o["kind"] = suite.CRD.Spec.Group+"/"+spec.Name, suite.CRD.Spec.Names.Kind
				o["metadata"] = map[string]any{"name": "a", "generation": int64(1)}
				return o
			}
			for _, c := range suite.Cases {
				if c.Object == nil {
					continue
				}
				where := fmt.Sprintf("%s: %s %s", suite.About, spec.Name, c.Name)
				compared++
				of, with := object(c.Object), object(c.Object)
				v := d.Version(spec.Name)
				if diff := cmp.Diff(v.Prune(of), bare.Prune(with)); diff != "" {
					t.Errorf("%s: pruned (-version +schema):\n%s", where, diff)
				}
				v.Default(of)
				bare.Default(with)
				if diff := cmp.Diff(of, with); diff != "" {
					t.Errorf("%s: the object (-version +schema):\n%s", where, diff)
				}
				if diff := cmp.Diff(sorted(v.Validate(t.Context(), of)), sorted(bare.Validate(t.Context(), with))); diff != "" {
					t.Errorf("%s: errors (-version +schema):\n%s", where, diff)
				}
				if c.Old == nil || c.Old["status"] != nil || of["status"] != nil {
					continue // an update prepares the status
				}
				updates++
				if diff := cmp.Diff(sorted(v.ValidateUpdate(t.Context(), of, object(c.Old))), sorted(bare.ValidateUpdate(t.Context(), with, object(c.Old)))); diff != "" {
					t.Errorf("%s: errors of the update (-version +schema):\n%s", where, diff)
				}
			}
		}
	}
	if compared < 100 || updates < 30 {
		t.Errorf("only %d objects and %d updates were compared", compared, updates)
	}
}

// sorted returns the messages of errors, which are in the order of Go's maps.
func sorted(errs field.ErrorList) []string { return slices.Sorted(slices.Values(messages(errs))) }

// The first schema is the example of the documentation of structural schemas.
func TestParseSchema_ReportsEachProblem(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"not structural": {`properties:
  foo: {pattern: abc}
  metadata:
    type: object
    properties:
      finalizers: {type: array, items: {type: string}}
anyOf:
- properties:
    bar: {type: integer, minimum: 42}
  required: [bar]
  description: foo bar object
`, []string{
			"anyOf[0].description: Forbidden: must be empty to be structural",
			"anyOf[0].properties[bar].type: Forbidden: must be empty to be structural",
			"properties[bar]: Required value: because it is defined in anyOf[0].properties[bar]",
			"properties[foo].type: Required value: must not be empty for specified object fields",
			"properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
			"type: Required value: must not be empty at the root",
		}},
		"another root":       {"type: string", []string{`type: Invalid value: "string": must be object at the root`}},
		"an unknown field":   {"{type: object,\nopenAPIV3Schema: {}}", []string{`unknown field "openAPIV3Schema"`}},
		"a value of another": {`{"type": "object", "required": "a"}`, []string{"json: cannot unmarshal string into Go struct field JSONSchemaProps.required of type []string"}},
		"a name twice":       {"type: object\ntype: object", []string{`line 2: key "type" already set in map`}},
		"a costly rule":      {"{type: object, properties: {a: {type: array, items: {type: string}}},\nx-kubernetes-validations: [{rule: 'self.a.all(x, self.a.all(y, x == y))'}]}", []string{"Forbidden: x-kubernetes-validations estimated", "x-kubernetes-validations[0].rule: Forbidden: contributed to", "x-kubernetes-validations[0].rule: Forbidden: estimated rule cost"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schema.ParseSchema([]byte(test.text))
			got := strings.Split(fmt.Sprint(err), "\n")
			slices.Sort(got)
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i, want := range test.want {
				if want = "schema: document 1 (line 1): " + want; !strings.HasPrefix(got[i], want) {
					t.Errorf("got %s, want %s", got[i], want)
				}
			}
		})
	}
}

func TestParseSchema_TakesOneSchema(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "schema: found 0 schemas: want one",
		"[]":                                  "schema: document 1 (line 1): ",
		"a: b:":                               "schema: document 1 (line 1): ",
		"{type: object}\n---\n{type: object}": "schema: found 2 schemas: want one",
	} {
		if _, err := schema.ParseSchema([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A schema can be tried without a definition.
func ExampleParseSchema() {
	s, err := schema.ParseSchema([]byte(`
type: object
properties:
  spec:
    type: object
    properties:
      size: {type: string, default: medium}
      toppings:
        type: array
        x-kubernetes-list-type: set
        items: {type: string}
`))
	if err != nil {
		panic(err)
	}
	object := map[string]any{"spec": map[string]any{"colour": "red", "toppings": []any{"basil", "basil"}}}
	fmt.Println(s.Prune(object))
	s.Default(object)
	fmt.Println(object)
	fmt.Println(s.Validate(context.Background(), object))
	// Output:
	// [spec.colour]
	// map[spec:map[size:medium toppings:[basil basil]]]
	// [spec.toppings[1]: Duplicate value: "basil"]
}

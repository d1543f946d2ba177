package validate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission/validate"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// TestDocumentation_CELRules puts the rules of doc.go into a schema, and updates objects. They
// judge as the functions do.
func TestDocumentation_CELRules(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	expect.NoError(t, err)
	rules := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^//\t([A-Z]\w+) +(.*self.*)$`).FindAllSubmatch(text, -1) {
		rules[string(line[1])] = string(line[2])
	}

	type item struct {
		Name string `json:"name"`
	}
	type fields struct {
		A string `json:"a,omitempty"`
		B string `json:"b,omitempty"`
	}
	type list struct {
		A []item `json:"a"`
	}
	const text20 = `{type: string, maxLength: 20}`
	const items = `{type: array, maxItems: 5, items: {type: object, required: [name], properties: {name: ` + text20 + `}}}`
	var strings, lists []any
	for _, a := range []string{"", "S", "M", "L"} {
		strings = append(strings, fields{A: a}, fields{A: a, B: "b"})
	}
	for _, names := range []string{"", "x", "y", "xy", "yx"} {
		l := list{A: []item{}}
		for _, name := range names {
			l.A = append(l.A, item{string(name)})
		}
		lists = append(lists, l)
	}
	path := field.NewPath("spec", "a")
	a := func(v any) string { return v.(fields).A }
	judges := map[string]struct {
		a     string // the schema of the field
		specs []any
		judge func(obj, old any) field.ErrorList
	}{
		"Immutable":        {text20, strings, func(obj, old any) field.ErrorList { return validate.Immutable(path, a(obj), a(old)) }},
		"ImmutableOnceSet": {text20, strings, func(obj, old any) field.ErrorList { return validate.ImmutableOnceSet(path, a(obj), a(old)) }},
		"Transition": {text20, slices.DeleteFunc(slices.Clone(strings), func(v any) bool { return a(v) == "" }), func(obj, old any) field.ErrorList {
			return validate.Transition(path, a(obj), a(old), map[string][]string{"S": {"M", "L"}})
		}},
		"ExactlyOneOf": {text20, strings, func(obj, _ any) field.ErrorList {
			return validate.ExactlyOneOf(path, map[string]bool{"a": a(obj) != "", "b": obj.(fields).B != ""})
		}},
		"NoRemoveItem": {items, lists, func(obj, old any) field.ErrorList {
			return validate.NoRemoveItem(path, obj.(list).A, old.(list).A, func(i item) string { return i.Name })
		}},
	}
	for name, c := range judges {
		if rules[name] == "" {
			t.Errorf("doc.go has no rule for %s", name)
			continue
		}
		crd, err := schema.Parse(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {a: %s, b: {type: string}}
            x-kubernetes-validations:
            - rule: "%s"
`, c.a, rules[name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		allowed, denied := 0, 0
		for _, obj := range c.specs {
			for _, old := range c.specs {
				if c.judge(old, old) != nil {
					continue // nothing like that is stored
				}
				_, err := crd.Version("v1").Update(t.Context(), thing(t, obj), thing(t, old))
				errs := c.judge(obj, old)
				if (err == nil) != (errs == nil) {
					t.Errorf("%s: from %+v to %+v: the rule says %v, the function %v", name, old, obj, err, errs)
				}
				if errs == nil {
					allowed++
				} else {
					denied++
				}
			}
		}
		if allowed == 0 || denied == 0 {
			t.Errorf("%s: %d are allowed, %d denied", name, allowed, denied)
		}
	}
	if len(rules) != len(judges) {
		t.Errorf("doc.go has %d rules, and %d are checked", len(rules), len(judges))
	}
}

// thing returns an object with a spec, as it is stored.
func thing(t *testing.T, spec any) []byte {
	t.Helper()
	text, err := json.Marshal(spec)
	expect.NoError(t, err)
	return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","namespace":"default","generation":1},"spec":%s}`, text)
}

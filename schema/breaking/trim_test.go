package breaking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/schema"
)

// What names a property that is trimmed away must not keep a definition from being trimmed:
// then, proving takes minutes.
func TestWideDefinitionsAreTrimmed(t *testing.T) {
	var fields strings.Builder
	for i := range 200 {
		fmt.Fprintf(&fields, "f%d: {type: string}, n%d: {type: integer}, ", i, i)
	}
	wide := func(t *testing.T, value, additions string) *search {
		t.Helper()
		d, err := schema.Parse(fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apples.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: apples, kind: Apple}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: false, %s schema: {openAPIV3Schema: {type: object, properties: {spec: {
     type: object, default: %s, x-kubernetes-validations: [{rule: "!has(self.f5) || has(self.last)", messageExpression: "'f6: ' + self.f6", fieldPath: .n6}], properties: {%s last: {type: string, default: x}}}}}}}
`, additions, value, fields.String()))
		if err != nil {
			t.Fatal(err)
		}
		up := &upgrade{ctx: t.Context(), old: newDefinition(d), new: newDefinition(d)}
		return newSearch(up, up.old.versions["v1"], up.new.versions["v1"], []*change{{steps: []string{"spec", "f7"}}})
	}
	for name, additions := range map[string]string{
		"nothing else":      "",
		"selectable fields": "selectableFields: [{jsonPath: .spec.f3}],",
		"columns":           "additionalPrinterColumns: [{name: F, type: string, jsonPath: .spec.f3}],",
		"scale":             "subresources: {scale: {specReplicasPath: .spec.n3, statusReplicasPath: .status.n3}},",
	} {
		t.Run(name, func(t *testing.T) {
			s := wide(t, "{}", additions)
			small := s.narrower(s.changes)
			if small == s {
				t.Fatal("the search goes on with the whole definition")
			}
			spec := small.was.structural.Properties["spec"].Properties
			for _, name := range []string{"f5", "f6", "n6", "f7", "last"} {
				if _, ok := spec[name]; !ok {
					t.Errorf("%s is trimmed away", name)
				}
			}
			if len(spec) != 5 {
				t.Errorf("it has %d fields, want 5", len(spec))
			}
			if got := small.old.Versions(); len(got) != 2 {
				t.Errorf("it has the versions %s, want v2, which is stored, and v1", got)
			}
		})
	}
	t.Run("a default with a property", func(t *testing.T) {
		s := wide(t, "{f3: x}", "")
		if s.narrower(s.changes) != s {
			t.Error("the search goes on without the property")
		}
	})
}

package differential

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Each suite that is tried is smaller.
func TestSmaller(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com",
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"}}},
		}}},
	}}
	s := &Suite{CRD: crd, Before: crd, Cases: []Case{{Raw: `{"a":"b","c":[1,2.0]}`, Old: map[string]any{"a": "b"}}}}
	var bodies []string
	for _, smaller := range smaller(s) {
		if smaller.size() >= s.size() || smaller.CRD.Spec.Group != "example.com" {
			t.Errorf("%+v", smaller)
		}
		if c := smaller.Cases[0]; c.Raw != s.Cases[0].Raw {
			bodies = append(bodies, c.Raw)
		}
	}
	if diff := cmp.Diff(`{"a":"b"}, {"c":[1,2.0]}, {"a":"b","c":[1]}, {"a":"b","c":[2.0]}`, strings.Join(bodies, ", ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Cases[0].Old["a"] != "b" || len(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties) != 1 {
		t.Error("the suite has changed")
	}
}

// Only what a server knows is left out.
func TestTimeless(t *testing.T) {
	c := &Comparison{Body: []byte(`{"metadata":{"generateName":"gen-"}}`)}
	for text, want := range map[string]string{
		`Invalid value: {"kind":"X","metadata":{"name":"a","uid":"u","managedFields":[]}}: no`: `Invalid value: {"kind":"X","metadata":{"name":"a"}}: no`,
		`Invalid value: {"a":{"uid":"u"}}: no`:                                                 `Invalid value: {"a":{"uid":"u"}}: no`,
		`Invalid value: {not JSON`:                                                             `Invalid value: {not JSON`,
		`X "gen-x7k2p" is invalid`:                                                             `X "" is invalid`,
		`applied to 'selfType648477004.()'`:                                                    `applied to 'selfType.()'`,
		`x-kubernetes-list-type: 0xc0001a2b30: must`:                                           `x-kubernetes-list-type: 0xc0: must`,
	} {
		if got := c.timeless(Outcome{Message: text}).Message; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

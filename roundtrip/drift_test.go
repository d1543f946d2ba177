package roundtrip

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/expect"
)

type (
	drifting struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Inlined           `json:",inline"`
		Spec              *driftingSpec `json:"spec,omitempty"`
	}
	// Inlined is exported, or JSON would not see it.
	Inlined struct {
		Note string `json:"note"`
	}
	driftingSpec struct {
		Address  netip.Addr                   `json:"address"` // has UnmarshalText only
		Count    string                       `json:"count"`
		Ratio    int64                        `json:"ratio"`
		Port     intstr.IntOrString           `json:"port"`
		Memory   resource.Quantity            `json:"memory"`
		Data     []byte                       `json:"data"`
		Any      any                          `json:"any"`
		List     []*driftingSpec              `json:"list"`
		Map      map[string]map[string]string `json:"map"`
		Closed   map[string]string            `json:"closed"`
		Template metav1.ObjectMeta            `json:"template"`
		Hidden   string                       `json:"-"`
		Open     struct{ X string }           `json:"open"`
	}
)

// Each difference between a type and its schema is named.
func TestDrift_NamesEachDifference(t *testing.T) {
	const text = `
type: object
properties:
  apiVersion: {type: string}
  metadata: {type: object}
  note: {type: string}
  spec:
    type: object
    properties:
      address: {type: string}
      count: {type: integer}
      ratio: {type: number}
      port: {x-kubernetes-int-or-string: true}
      memory: {x-kubernetes-int-or-string: true}
      data: {type: string, format: byte}
      any: {x-kubernetes-preserve-unknown-fields: true}
      list:
        type: array
        items:
          type: object
          properties: {count: {type: string}, extra: {type: string}}
      map:
        type: object
        additionalProperties: {type: object, additionalProperties: {type: boolean}}
      closed: {type: object}
      template: {type: object}
      open: {type: object, x-kubernetes-preserve-unknown-fields: true}
  status: {type: object}
`
	v1, props := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	expect.NoError(t, yaml.Unmarshal([]byte(text), v1))
	expect.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil))
	structural, err := structuralschema.NewStructural(props)
	expect.NoError(t, err)
	var inList []string
	for _, name := range []string{"address", "any", "closed", "data", "list", "map", "memory", "open", "port", "ratio", "template"} {
		inList = append(inList, "spec.list[*]."+name+": roundtrip.driftingSpec has it, and the schema does not: the API server prunes it")
	}
	want := []string{
		"spec.closed[*]: map[string]string has members, and the schema allows none: the API server prunes them",
		"spec.count: the schema says integer, and string cannot hold that",
	}
	want = append(want, inList[:3]...)
	want = append(want, inList[3], "spec.list[*].extra: the schema has it, and no field of roundtrip.driftingSpec can hold it")
	want = append(want, inList[4:]...)
	want = append(want,
		"spec.map[*][*]: the schema says boolean, and string cannot hold that",
		"spec.ratio: the schema says number, and int64 cannot hold that",
		"spec.template: the schema has no fields for the metadata: the API server prunes all of it (controller-gen: generateEmbeddedObjectMeta=true)",
		"status: the schema has it, and no field of roundtrip.drifting can hold it",
	)
	if diff := cmp.Diff(want, drift(reflect.TypeFor[drifting](), structural)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

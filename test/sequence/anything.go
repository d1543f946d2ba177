package sequence

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	crdschema "github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/scheme/resource"
)

// anything is the Go type of a version. It keeps its JSON as it is, so that a conversion changes
// nothing but apiVersion, as the strategy None of a definition does.
type anything[V any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"` // is not used
	json              unstructured.Unstructured
}

func (a *anything[V]) UnmarshalJSON(text []byte) error {
	err := a.json.UnmarshalJSON(text)
	a.TypeMeta = metav1.TypeMeta{APIVersion: a.json.GetAPIVersion(), Kind: a.json.GetKind()}
	return err
}

func (a *anything[V]) MarshalJSON() ([]byte, error) {
	a.json.SetGroupVersionKind(a.GroupVersionKind())
	return a.json.MarshalJSON()
}

func (a *anything[V]) DeepCopyObject() runtime.Object {
	return &anything[V]{TypeMeta: a.TypeMeta, json: *a.json.DeepCopy()}
}

// The versions of a definition, by their place in it. The first is the hub.
type (
	first  struct{}
	second struct{}
	third  struct{}
)

// newResource returns the resource of a definition with at most three versions.
func newResource(definition *crdschema.Definition) (*resource.Resource, error) {
	types := runtime.NewScheme()
	versions := []runtime.Object{&anything[first]{}, &anything[second]{}, &anything[third]{}}
	for i, version := range definition.Versions() {
		types.AddKnownTypeWithName(definition.GroupKind().WithVersion(version), versions[i])
	}
	if err := errors.Join(addConversions[second](types), addConversions[third](types)); err != nil {
		return nil, err
	}
	return resource.New[*anything[first]](types, definition)
}

// addConversions adds the conversions between a version and the hub.
func addConversions[V any](types *runtime.Scheme) error {
	return errors.Join(
		types.AddConversionFunc((*anything[first])(nil), (*anything[V])(nil), copyTo[first, V]),
		types.AddConversionFunc((*anything[V])(nil), (*anything[first])(nil), copyTo[V, first]))
}

func copyTo[From, To any](in, out any, _ conversion.Scope) error {
	out.(*anything[To]).json = *in.(*anything[From]).json.DeepCopy()
	return nil
}

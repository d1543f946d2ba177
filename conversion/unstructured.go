package conversion

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddUnstructuredSpoke adds the two conversions between a version without a Go type, the spoke,
// which the scheme need not know, and the kind's hub version H. H is a pointer to a Go type, or
// *[unstructured.Unstructured].
//
// If H is unstructured, hubVersion is required, because the type does not determine the version.
// Otherwise hubVersion must be empty, or the version of H.
//
// For the functions and the errors, see [AddSpoke]. AddUnstructuredSpoke also returns an
// error if the version or the kind of the spoke is empty.
//
// The unstructured objects have apiVersion, kind, and metadata without managedFields. Their
// integers are int64, and their other numbers are float64.
func AddUnstructuredSpoke[H runtime.Object](r *Registry, spoke schema.GroupVersionKind, hubVersion string,
	toHub func(ctx context.Context, in *unstructured.Unstructured, out H) error,
	fromHub func(ctx context.Context, in H, out *unstructured.Unstructured) error) error {
	if spoke.Version == "" || spoke.Kind == "" {
		return fmt.Errorf("conversion: %s has no version or no kind", spoke)
	}
	hub := schema.GroupVersionKind{Group: spoke.Group, Version: hubVersion, Kind: spoke.Kind}
	if t := reflect.TypeFor[H](); t == reflect.TypeFor[*unstructured.Unstructured]() {
		if hubVersion == "" {
			return fmt.Errorf("conversion: the hub of %s is unstructured, and needs a version", spoke)
		}
	} else {
		kind, err := r.kindOf(t)
		if err != nil {
			return err
		}
		if hubVersion != "" && hubVersion != kind.Version {
			return fmt.Errorf("conversion: the hub of %s is %s, and not version %s", spoke, kind, hubVersion)
		}
		hub = kind
	}
	return addFunctions(r, spoke, hub, toHub, fromHub)
}

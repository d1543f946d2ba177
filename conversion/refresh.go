package conversion

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/trace"
)

// RefreshLossless gives an object of a [Lossless] spoke, which a user has edited, the
// annotation that fits the edit: what the hub knew of a removed element goes, and does not
// come back with a new element of the same key. It is for a mutating webhook, and needed
// only while the spoke is the storage version: otherwise each write does the same.
//
// The object is a pointer to a registered type, or unstructured, and has its apiVersion
// and kind. One without the annotation is left alone. The error is that of
// [Registry.Convert], and the object is unchanged then.
func RefreshLossless(ctx context.Context, r *Registry, object interface {
	metav1.Object
	runtime.Object
}) error {
	annotations := object.GetAnnotations()
	if _, noted := annotations[LosslessAnnotation]; !noted {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("conversion: cannot encode %s: %w", object.GetName(), err)
	}
	text, err = r.Convert(trace.ThroughHub(ctx), text, object.GetObjectKind().GroupVersionKind().GroupVersion())
	if err != nil {
		return err
	}
	var converted metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &converted); err != nil {
		return fmt.Errorf("conversion: cannot read %s: %w", object.GetName(), err)
	}
	delete(annotations, LosslessAnnotation)
	if note, noted := converted.Annotations[LosslessAnnotation]; noted {
		annotations[LosslessAnnotation] = note
	}
	object.SetAnnotations(annotations)
	return nil
}

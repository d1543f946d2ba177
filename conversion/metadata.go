package conversion

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// objectMeta returns the metadata of a typed object, for reading and writing.
func objectMeta(obj runtime.Object) (*metav1.ObjectMeta, error) {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if meta, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok && meta != nil {
			return meta, nil
		}
	}
	return nil, fmt.Errorf("%T does not embed metav1.ObjectMeta", obj)
}

// typeMeta returns the apiVersion and kind of a typed object, for writing.
func typeMeta(obj runtime.Object) (*metav1.TypeMeta, error) {
	if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok && meta != nil {
		return meta, nil
	}
	return nil, fmt.Errorf("%T does not embed metav1.TypeMeta", obj)
}

// setMetadata sets the type and the metadata of a typed object, which has both: see kindOf.
func setMetadata(obj runtime.Object, t metav1.TypeMeta, m *metav1.ObjectMeta, labels, annotations map[string]string) {
	ofType, _ := typeMeta(obj)
	meta, _ := objectMeta(obj)
	*ofType, *meta = t, *m
	meta.Labels, meta.Annotations = labels, annotations
}

// snapshotMetadata returns metadata as it was read. Parts that a function could change in
// place are copied. Labels and annotations are compared with their pairs instead.
func snapshotMetadata(m *metav1.ObjectMeta) *metav1.ObjectMeta {
	if len(m.OwnerReferences)+len(m.Finalizers) == 0 && m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil {
		return m
	}
	c := *m
	c.Labels, c.Annotations = nil, nil
	return c.DeepCopy()
}

// checkMetadata returns an error that names the fields in which the metadata of an object
// has changed, other than labels and annotations.
func checkMetadata(before, after *metav1.ObjectMeta) error {
	//lint:ignore SA1019 selfLink must not change either, although it is unused
	sameLink := before.SelfLink == after.SelfLink
	if sameLink && before.Name == after.Name && before.GenerateName == after.GenerateName &&
		before.Namespace == after.Namespace &&
		before.UID == after.UID && before.ResourceVersion == after.ResourceVersion &&
		before.Generation == after.Generation && before.CreationTimestamp == after.CreationTimestamp &&
		before.DeletionTimestamp.Equal(after.DeletionTimestamp) &&
		ptr.Equal(before.DeletionGracePeriodSeconds, after.DeletionGracePeriodSeconds) &&
		len(before.OwnerReferences)+len(after.OwnerReferences) == 0 && slices.Equal(before.Finalizers, after.Finalizers) &&
		len(after.ManagedFields) == 0 {
		return nil
	}
	var changed []string
	a, b := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for _, f := range jsontype.FieldsOf(a.Type()) {
		if f.JSON != "labels" && f.JSON != "annotations" && !equality.Semantic.DeepEqual(a.FieldByIndex(f.Index).Interface(), b.FieldByIndex(f.Index).Interface()) {
			changed = append(changed, "metadata."+f.JSON)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("the conversion function changed %s: only labels and annotations may be changed", strings.Join(changed, ", "))
}

// same reports whether a map still holds the pairs that were read.
func same(pairs []pair, m map[string]string) bool {
	if len(pairs) != len(m) {
		return false
	}
	for _, p := range pairs {
		if v, ok := m[p.key]; !ok || v != p.value {
			return false
		}
	}
	return true
}

// spliceMetadata returns the JSON of the object's metadata with the labels and annotations
// that a function changed.
func (o *object) spliceMetadata(labels, annotations map[string]string) ([]byte, error) {
	text := o.metadata
	for _, m := range []struct {
		name   string
		before []pair
		after  map[string]string
	}{
		{"labels", o.labels, labels},
		{"annotations", o.annotations, annotations},
	} {
		if same(m.before, m.after) {
			continue
		}
		var value []byte
		var err error
		if len(m.after) > 0 {
			if value, err = json.Marshal(m.after); err != nil {
				return nil, err
			}
		}
		if text, err = rawjson.Set(text, m.name, value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// objectMeta returns the metadata of a typed object, to be read and written.
func objectMeta(obj runtime.Object) (*metav1.ObjectMeta, error) {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if meta, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return meta, nil
		}
	}
	return nil, fmt.Errorf("%T does not embed metav1.ObjectMeta", obj)
}

// passMetadata gives out the metadata of in. The maps are copies: a function
// that adds a label to out does not add it to in.
func passMetadata(in, out runtime.Object) error {
	from, err := objectMeta(in)
	if err != nil {
		return err
	}
	to, err := objectMeta(out)
	if err != nil {
		return err
	}
	*to = *from
	to.Labels, to.Annotations = maps.Clone(from.Labels), maps.Clone(from.Annotations)
	return nil
}

// checkMetadata returns an error that names the fields, other than labels and
// annotations, in which the metadata of an object differs from what it was.
func checkMetadata(before *metav1.ObjectMeta, out runtime.Object) error {
	meta, err := objectMeta(out)
	if err != nil {
		return err
	}
	after := *meta
	after.Labels, after.Annotations = before.Labels, before.Annotations
	if equality.Semantic.DeepEqual(*before, after) {
		return nil
	}
	var changed []string
	a, b := reflect.ValueOf(*before), reflect.ValueOf(after)
	for i := range a.NumField() {
		if !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			changed = append(changed, "metadata."+name)
		}
	}
	return fmt.Errorf("the conversion function changed %s: only labels and annotations may be changed", strings.Join(changed, ", "))
}

// spliceMetadata returns the text of the source's metadata with those labels and
// annotations that a function changed.
func spliceMetadata(text []byte, before, after *metav1.ObjectMeta) ([]byte, error) {
	for _, m := range []struct {
		name          string
		before, after map[string]string
	}{
		{"labels", before.Labels, after.Labels},
		{"annotations", before.Annotations, after.Annotations},
	} {
		if maps.Equal(m.before, m.after) {
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

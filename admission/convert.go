package admission

import (
	"context"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Converter converts one object, given as JSON, to another version of its kind. It must
// not keep the object, whose memory is used again, nor change it. *conversion.Registry is
// one.
type Converter interface {
	Convert(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)
}

// ConvertWith lets each function of the handler serve every version of its kind:
// an object of another version is converted to the version of the function. What
// a mutating function changed is converted back to the version of the request,
// and only that: fields which neither version's Go type knows stay. The paths in
// the field errors of a validating function are those of its own version.
//
// A field error of the converter denies the request, as one of a function does. Where it
// is at an annotation of the object as it is stored, such as that of conversion.Lossless,
// functions see that object without the annotation. So an update that removes it is
// decided like any other, and so is the deletion, in the version that is stored.
//
// If the converter has a method Versions(schema.GroupKind) []string, as
// *conversion.Registry has, package webhook/registration registers the functions for those
// versions, else for all. It is a fault if the converter is nil.
func ConvertWith(c Converter) Option {
	return func(h *handler) {
		if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			h.faults = append(h.faults, errors.New("admission: the converter of ConvertWith is nil"))
		}
		h.converter = c
	}
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/kinds"
)

// function is a function of the author, and when it is called.
type function struct {
	kind           schema.GroupVersionKind // of the objects that it wants; empty if it takes them as they are
	form           form
	goType         reflect.Type
	operations     []admissionv1.Operation
	subresource    string
	changed        []string // see IfChanged
	unlessDeleting bool
	seesOld        bool
	faults         []error

	// One of them is set.
	mutate   func(ctx context.Context, obj runtime.Object) error
	validate func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error)
}

func (f *function) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf(format, args...))
}

var errNoFunction = errors.New("a function is nil")

// prepare completes a function for objects of type T. Faults are noted.
func prepare[T runtime.Object](h *handler, f *function, isNil bool, filters []Filter) *function {
	f.goType = reflect.TypeFor[T]()
	if isNil {
		f.faults = append(f.faults, errNoFunction)
	}
	for _, filter := range filters {
		filter(f)
	}
	switch {
	case !everyKind(f.goType):
		kind, err := kinds.Of(h.scheme, f.goType)
		switch {
		case err != nil:
			f.faults = append(f.faults, err)
		case !f.kind.Empty() && f.kind != kind:
			f.fault("a function for %s cannot be one for %s", kind, f.kind)
		}
		f.kind = kind
	case f.kind.Version == "" && f.kind.Kind != "":
		f.fault("ForKind %s has no version", f.kind)
	}
	if len(f.faults) == 0 {
		f.form = h.form(f.goType)
	}
	for _, err := range f.faults {
		h.faults = append(h.faults, fmt.Errorf("admission: %w", err))
	}
	return f
}

// matches says whether a function is for a kind, perhaps after a conversion.
func (f *function) matches(h *handler, kind schema.GroupVersionKind) bool {
	return f.kind.Empty() || f.kind == kind || h.converter != nil && f.kind.GroupKind() == kind.GroupKind()
}

// applies says whether a function is to be called for the request.
func (f *function) applies(c *call) (bool, error) {
	if f.subresource != c.subresource || !f.matches(c.handler, c.kind) || !slices.Contains(f.operations, c.operation) {
		return false, nil
	}
	if f.unlessDeleting && isDeleting(c.oldObject) {
		return false, nil
	}
	if f.changed == nil || c.operation != admissionv1.Update {
		return true, nil
	}
	object, err := c.current()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(f.changed, func(path string) bool { return differ(object, c.oldObject, path) }), nil
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// function is a registered function, with the requests for which it is called. What limits these requests
// also belongs in served, from which package webhook/registration derives the manifests.
type function struct {
	kind           schema.GroupVersionKind // the kind and version that it wants; empty for every kind and version
	goType         reflect.Type
	form           *codec.Form       // of the type
	listKeys       *listmapkeys.Tree // of the type, of a function of Mutate
	operations     []admissionv1.Operation
	on             bool // the operations are those of On
	subresource    string
	changed        [][]string // see IfChanged
	unlessDeleting bool
	seesOld        bool
	errs           []error

	// One of mutate and validate is set.
	mutate   func(ctx context.Context, obj runtime.Object) error
	validate func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error)
}

// everyKind reports whether a type can hold objects of every kind.
func everyKind(t reflect.Type) bool {
	return t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

func (f *function) errorf(format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf(format, args...))
}

var errNoFunction = errors.New("a function is nil")

// prepare completes a function for objects of type T, and collects its errors.
func prepare[T runtime.Object](h *handler, made function, isNil bool, filters []Filter) *function {
	f := &made
	f.goType = reflect.TypeFor[T]()
	if isNil {
		f.errs = append(f.errs, errNoFunction)
	}
	for _, filter := range filters {
		filter(f)
	}
	if !everyKind(f.goType) {
		kind, err := gvk.Of(h.scheme, f.goType)
		switch {
		case err != nil:
			f.errs = append(f.errs, err)
		case !f.kind.Empty() && f.kind != kind:
			f.errorf("ForKind %s: the Go type of the function has kind %s", f.kind, kind)
		}
		f.kind = kind
	}
	if len(f.errs) == 0 {
		f.form = h.codecs.Form(f.goType)
	}
	for _, err := range f.errs {
		h.errs = append(h.errs, fmt.Errorf("admission: %w", err))
	}
	return f
}

// matches reports whether a function is for a kind, perhaps after a conversion.
func (f *function) matches(h *handler, kind schema.GroupVersionKind) bool {
	return f.kind.Empty() || f.kind == kind ||
		f.kind.GroupKind() == kind.GroupKind() && (h.converter != nil || f.seesMetadata())
}

// seesMetadata reports whether a function sees only the metadata of an object,
// which is the same in all versions.
func (f *function) seesMetadata() bool {
	return f.goType == reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

// kindFor returns the kind and version in which a function wants the object of a call.
func (f *function) kindFor(c *call) schema.GroupVersionKind {
	if f.kind.Empty() || f.seesMetadata() {
		return c.kind
	}
	return f.kind
}

// applies reports whether a function is to be called for the request.
func (f *function) applies(ctx context.Context, c *call) (bool, error) {
	if f.subresource != c.subresource || !f.matches(c.handler, c.kind) || !slices.Contains(f.operations, c.operation) {
		return false, nil
	}
	if f.unlessDeleting && isDeleting(c.oldObject) {
		return false, nil
	}
	if f.changed == nil || c.operation != admissionv1.Update {
		return true, nil
	}
	kind := f.kindFor(c)
	object, err := c.inVersion(ctx, c.object, kind, false)
	if err != nil {
		return false, c.asBadRequest(err)
	}
	old, err := c.inVersion(ctx, c.oldObject, kind, true)
	if err != nil {
		return true, nil // an unreadable object counts as changed
	}
	return slices.ContainsFunc(f.changed, func(path []string) bool { return differ(object, old, path) }), nil
}

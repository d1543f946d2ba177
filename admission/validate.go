package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate adds a function that validates objects when they are created or updated; see [On] for only
// one of these, and for CONNECT. T is one of the types that [Mutate] accepts. The function must be safe
// for concurrent use, and must not change the object, because other functions may get the same object.
//
// The field errors of all functions are joined, and deny the request with code 422. The error is
// for other reasons to deny, such as [k8s.io/apimachinery/pkg/api/errors.NewForbidden], and for
// failures that leave the request undecided (see the package documentation).
func Validate[T runtime.Object](f func(ctx context.Context, obj T) (field.ErrorList, error), filters ...Filter) Option {
	return addValidator[T](function{
		operations: []admissionv1.Operation{admissionv1.Create, admissionv1.Update},
		validate: func(ctx context.Context, obj, _ runtime.Object) (field.ErrorList, error) {
			return f(ctx, obj.(T))
		},
	}, f == nil, filters)
}

// ValidateUpdate adds a function like [Validate], which is called only when objects are updated,
// with the stored object as old.
//
// An update is left undecided if the stored object does not fit the Go type, or cannot be converted
// to its version, except for annotations (see [ConvertWith]). Users then cannot repair the object,
// because each repair is an update. If such objects may be stored, use [Validate] with a function
// that calls [OldFrom], and that validates only the new object if OldFrom returns an error.
func ValidateUpdate[T runtime.Object](f func(ctx context.Context, obj, old T) (field.ErrorList, error), filters ...Filter) Option {
	return addValidator[T](function{
		operations: []admissionv1.Operation{admissionv1.Update},
		seesOld:    true,
		validate: func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error) {
			return f(ctx, obj.(T), old.(T))
		},
	}, f == nil, filters)
}

// ValidateDelete adds a function like [Validate], which is called only when objects are
// deleted, with the stored object.
//
// A deletion is left undecided if the stored object does not fit the Go type, or cannot be
// converted to its version (see [ConvertWith]). Users must then update the object before they can
// delete it, unless the function is for *metav1.PartialObjectMetadata or
// *unstructured.Unstructured.
func ValidateDelete[T runtime.Object](f func(ctx context.Context, old T) (field.ErrorList, error), filters ...Filter) Option {
	return addValidator[T](function{
		operations: []admissionv1.Operation{admissionv1.Delete},
		seesOld:    true,
		validate: func(ctx context.Context, _, old runtime.Object) (field.ErrorList, error) {
			return f(ctx, old.(T))
		},
	}, f == nil, filters)
}

// addValidator adds a copy of the function: an option may be given to several handlers.
func addValidator[T runtime.Object](f function, isNil bool, filters []Filter) Option {
	return func(h *handler) {
		h.validators = append(h.validators, prepare[T](h, f, isNil, filters))
	}
}

// validate runs the validating functions, and joins their errors. An error that several functions
// return, such as that an object cannot be decoded, is reported once.
func (c *call) validate(ctx context.Context) error {
	var errs []error
	for _, f := range c.handler.validators {
		applies, err := f.applies(ctx, c)
		if applies && err == nil {
			err = c.validateWith(ctx, f)
		}
		told := func(e error) bool { return reflect.DeepEqual(e, err) }
		if err != nil && !slices.ContainsFunc(errs, told) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *call) validateWith(ctx context.Context, f *function) error {
	var obj, old runtime.Object
	var err error
	if c.operation != admissionv1.Delete {
		if obj, err = c.decodeCached(ctx, f, c.object, false); err != nil {
			return c.asBadRequest(err)
		}
	}
	if f.seesOld {
		if old, err = c.decodeCached(ctx, f, c.oldObject, true); err != nil {
			return stored(err)
		}
	}
	return c.callFunction(ctx, f.kindFor(c), func(ctx context.Context) error {
		list, err := f.validate(ctx, obj, old)
		return errors.Join(err, list.ToAggregate())
	})
}

// stored returns an error about the stored object. It wraps nothing, so that it never denies,
// because the user did not cause the error.
func stored(err error) error { return fmt.Errorf("the stored object: %v", err) }

// decodeCached returns the object for a validating function.
func (c *call) decodeCached(ctx context.Context, f *function, text []byte, old bool) (runtime.Object, error) {
	kind := f.kindFor(c)
	for _, s := range c.seen {
		if s.form == f.form && s.kind == kind && s.old == old {
			return s.obj, nil
		}
	}
	obj, err := c.decode(ctx, &c.buffers.Arena, text, kind, f.form, old)
	if err == nil {
		c.seen = append(c.seen, seen{f.form, kind, old, obj})
	}
	return obj, err
}

// asBadRequest turns the error into a denial if the user's object does not fit its Go type.
// After a patch, the misfit may be the fault of a function, and denies nothing.
func (c *call) asBadRequest(err error) error {
	if !errors.Is(err, errMisfit) || len(c.patches) > 0 {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s: %v", &c.request, err))
}

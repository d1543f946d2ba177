package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate adds a function that judges objects of one type, as [Mutate] takes them, when
// they are created or updated. It must not change the object, which the functions that
// follow see too.
//
// The field errors of all functions are joined, and deny the request with 422.
// The error is for everything else: one that forbids, such as
// [k8s.io/apimachinery/pkg/api/errors.NewForbidden], or one that keeps the
// function from judging. See the package documentation.
func Validate[T runtime.Object](f func(ctx context.Context, obj T) (field.ErrorList, error), filters ...Filter) Option {
	return validateOn(f, filters, admissionv1.Create, admissionv1.Update)
}

// ValidateCreate is like [Validate], for creations alone.
func ValidateCreate[T runtime.Object](f func(ctx context.Context, obj T) (field.ErrorList, error), filters ...Filter) Option {
	return validateOn(f, filters, admissionv1.Create)
}

func validateOn[T runtime.Object](f func(ctx context.Context, obj T) (field.ErrorList, error), filters []Filter, operations ...admissionv1.Operation) Option {
	return addValidator[T](function{
		operations: operations,
		validate: func(ctx context.Context, obj, _ runtime.Object) (field.ErrorList, error) {
			return f(ctx, obj.(T))
		},
	}, f == nil, filters)
}

// ValidateUpdate is like [Validate], for updates alone: the function sees the
// object as it was, too. While that does not fit the Go type, or cannot be converted for
// another reason than an annotation (see [ConvertWith]), no update is decided, not even its
// repair. Where such objects may be stored, use a function of [Validate] that calls
// [OldFrom], and lets its error pass.
func ValidateUpdate[T runtime.Object](f func(ctx context.Context, obj, old T) (field.ErrorList, error), filters ...Filter) Option {
	return addValidator[T](function{
		operations: []admissionv1.Operation{admissionv1.Update},
		seesOld:    true,
		validate: func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error) {
			return f(ctx, obj.(T), old.(T))
		},
	}, f == nil, filters)
}

// ValidateDelete is like [Validate], for deletions alone: the function sees the
// object that is to be deleted. While that does not fit the Go type, or cannot be converted
// (see [ConvertWith]), its deletion is not decided: update the object first, or use a
// function of *metav1.PartialObjectMetadata or *unstructured.Unstructured.
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

// validate runs the validating functions, and joins their errors. An error that several
// functions meet, such as an object that cannot be decoded, is reported once.
func (c *call) validate(ctx context.Context) error {
	var errs []error
	for _, f := range c.handler.validators {
		applies, err := f.applies(ctx, c)
		if applies && err == nil {
			err = c.validateWith(ctx, f)
		}
		told := func(e error) bool { return e.Error() == err.Error() }
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
	return c.run(ctx, f.kindFor(c), func(ctx context.Context) error {
		list, err := f.validate(ctx, obj, old)
		return errors.Join(err, list.ToAggregate())
	})
}

// stored is an error about the object as it is stored. It wraps nothing, so that it denies
// nothing: the user did not cause it.
func stored(err error) error { return fmt.Errorf("the object as it is stored: %v", err) }

// decodeCached returns the object for a validating function.
func (c *call) decodeCached(ctx context.Context, f *function, text []byte, old bool) (runtime.Object, error) {
	kind := f.kindFor(c)
	for _, s := range c.seen {
		if s.representation == f.representation && s.kind == kind && s.old == old {
			return s.obj, nil
		}
	}
	obj, err := c.decode(ctx, &c.memory.Memory, text, kind, f.representation, old)
	if err == nil {
		c.seen = append(c.seen, seen{f.representation, kind, old, obj})
	}
	return obj, err
}

// asBadRequest makes a denial of an error about an object that the user wrote and that
// does not fit its Go type. Changes by a function are not the user's.
func (c *call) asBadRequest(err error) error {
	if !errors.Is(err, errMisfit) || len(c.patches) > 0 {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s: %v", c, err))
}

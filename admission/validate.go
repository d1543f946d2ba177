package admission

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type validator struct {
	kind      schema.GroupVersionKind
	newObject func() runtime.Object
	on        map[admissionv1.Operation]bool
	seesOld   bool
	validate  func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error)
}

// Validate adds a function that judges objects of one type, a pointer to a
// struct, when they are created or updated. It must not change the object.
//
// The field errors of all functions are joined, and deny the request with 422.
// The error is for everything else: one that forbids, such as
// [k8s.io/apimachinery/pkg/api/errors.NewForbidden], or one that keeps the
// function from judging. See the package documentation.
func Validate[T runtime.Object](f func(ctx context.Context, obj T) (field.ErrorList, error)) Option {
	return addValidator[T](f == nil, func(ctx context.Context, obj, _ runtime.Object) (field.ErrorList, error) {
		return f(ctx, obj.(T))
	}, admissionv1.Create, admissionv1.Update)
}

// ValidateUpdate is like [Validate], for updates alone: the function sees the
// object as it was, too.
func ValidateUpdate[T runtime.Object](f func(ctx context.Context, obj, old T) (field.ErrorList, error)) Option {
	return addValidator[T](f == nil, func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error) {
		return f(ctx, obj.(T), old.(T))
	}, admissionv1.Update)
}

// ValidateDelete is like [Validate], for deletions alone: the function sees the
// object that is to be deleted.
func ValidateDelete[T runtime.Object](f func(ctx context.Context, old T) (field.ErrorList, error)) Option {
	return addValidator[T](f == nil, func(ctx context.Context, _, old runtime.Object) (field.ErrorList, error) {
		return f(ctx, old.(T))
	}, admissionv1.Delete)
}

func addValidator[T runtime.Object](isNil bool, f func(ctx context.Context, obj, old runtime.Object) (field.ErrorList, error), ops ...admissionv1.Operation) Option {
	return func(h *handler) {
		if isNil {
			h.faults = append(h.faults, errNoFunction)
		}
		v := validator{kind: kindOf[T](h), newObject: newObject[T], on: map[admissionv1.Operation]bool{}, validate: f}
		for _, op := range ops {
			v.on[op] = true
		}
		v.seesOld = !v.on[admissionv1.Create]
		h.validators = append(h.validators, v)
	}
}

// validate runs the validating functions, all of them. An error that leaves the
// request undecided weighs more than any denial.
func (c *call) validate(ctx context.Context) error {
	var errs []error
	for _, v := range c.handler.validators {
		if !c.handler.calls(v.kind, c.kind()) || !v.on[c.request.Operation] {
			continue
		}
		var obj, old runtime.Object
		var err error
		if c.object != nil {
			if obj, err = c.decode(ctx, c.object, v.kind, v.newObject); err != nil {
				return c.theirs(err)
			}
		}
		if v.seesOld {
			if old, err = c.decode(ctx, c.oldObject, v.kind, v.newObject); err != nil {
				return fmt.Errorf("the object as it is stored: %w", err)
			}
		}
		err = c.guard(ctx, func() error {
			list, err := v.validate(ctx, obj, old)
			return errors.Join(err, list.ToAggregate())
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, err := range errs {
		if _, denied := c.denial(err); !denied {
			return err
		}
	}
	return errors.Join(errs...)
}

// theirs makes a denial of an error about an object that the user wrote and that
// does not fit its Go type.
func (c *call) theirs(err error) error {
	if !errors.Is(err, errMisfit) {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s: %v", c, err))
}

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crdkit/crdkit/admission"
)

// Defaulter has [admission.NewHandler] call an existing defaulter for objects of type T. O
// is inferred: it is T, or runtime.Object for a CustomDefaulter.
//
//	admission.NewHandler(s, controllerruntime.Defaulter[*v1.Backup](defaulter{}))
//
// The defaulter finds the request in the context (admission.RequestFromContext of
// controller-runtime), and the logger. An error denies, with the code and the message that
// controller-runtime answers; a panic leaves the request undecided. Defaulter panics if
// the defaulter is nil, or does not take a T.
func Defaulter[T, O runtime.Object](d peer.Defaulter[O], filters ...admission.Filter) admission.Option {
	check[T, O]("defaulter", d)
	return admission.Mutate(func(ctx context.Context, obj T) error {
		return denied(d.Default(withRequest(ctx), any(obj).(O)))
	}, filters...)
}

// Validator is like [Defaulter], for an existing validator or CustomValidator. It is called
// when objects are created, updated and deleted. Its warnings are those of the answer.
func Validator[T, O runtime.Object](v peer.Validator[O], filters ...admission.Filter) admission.Option {
	check[T, O]("validator", v)
	answer := func(ctx context.Context, warnings peer.Warnings, err error) (field.ErrorList, error) {
		for _, w := range warnings {
			admission.Warn(ctx, "%s", w)
		}
		return nil, denied(err)
	}
	return together(
		admission.Validate(func(ctx context.Context, obj T) (field.ErrorList, error) {
			warnings, err := v.ValidateCreate(withRequest(ctx), any(obj).(O))
			return answer(ctx, warnings, err)
		}, append(slices.Clip(filters), admission.On(admissionv1.Create))...),
		admission.ValidateUpdate(func(ctx context.Context, obj, old T) (field.ErrorList, error) {
			warnings, err := v.ValidateUpdate(withRequest(ctx), any(old).(O), any(obj).(O))
			return answer(ctx, warnings, err)
		}, filters...),
		admission.ValidateDelete(func(ctx context.Context, old T) (field.ErrorList, error) {
			warnings, err := v.ValidateDelete(withRequest(ctx), any(old).(O))
			return answer(ctx, warnings, err)
		}, filters...))
}

// together makes one option of several. H is the unexported type that they change.
func together[H any](opts ...func(H)) func(H) {
	return func(h H) {
		for _, opt := range opts {
			opt(h)
		}
	}
}

// check panics if a defaulter or validator is nil, or its methods do not take a T.
func check[T, O runtime.Object](what string, implementation any) {
	t, o := reflect.TypeFor[T](), reflect.TypeFor[O]()
	if implementation == nil {
		panic(fmt.Errorf("controllerruntime: the %s of %s is nil", what, t))
	}
	if !t.AssignableTo(o) {
		panic(fmt.Errorf("controllerruntime: the %s %T is for %s, not for %s", what, implementation, o, t))
	}
}

func withRequest(ctx context.Context) context.Context {
	request, ok := admission.RequestFrom(ctx)
	if !ok {
		return ctx
	}
	return peer.NewContextWithRequest(ctx, peer.Request{AdmissionRequest: *request})
}

// denied returns an error that denies, as every error does in controller-runtime
// (pkg/webhook/admission/validator_custom.go). Of API errors with a code that package
// admission takes for undecided, the message stays.
func denied(err error) error {
	if err == nil {
		return nil
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		said := api.Status()
		switch code := said.Code; {
		case code < http.StatusBadRequest, code >= http.StatusInternalServerError, code == http.StatusUnauthorized, code == http.StatusNotFound,
			code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
			status.Message = said.Message
		default:
			status = said
		}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/review"
)

// denial returns the Status that tells the user why the request is denied, or nil if no error
// denies. Other parts of a joined error are logged.
func (r *request) denial(ctx context.Context, err error) *metav1.Status {
	var invalid field.ErrorList
	var status *metav1.Status
	var texts, others []error
	for _, leaf := range leavesOf(err) {
		if found := fieldErrorsOf(leaf); len(found) > 0 {
			invalid, texts = append(invalid, found...), append(texts, leaf)
			continue
		}
		switch denied := denies(leaf); {
		case denied == nil:
			others = append(others, leaf)
		case status == nil:
			status = denied
		default:
			status.Message += "; " + denied.Message
		}
	}
	if len(invalid) > 0 {
		all := apierrors.NewInvalid(r.kind.GroupKind(), r.objectName(), invalid).Status()
		all.Message = fmt.Sprintf("%s %q is invalid: %v", r.kind.GroupKind(), r.objectName(), utilerrors.NewAggregate(texts))
		if status != nil {
			all.Message += "; " + status.Message
		}
		status = &all
	}
	if status != nil {
		status.Message = logtext.Cut(status.Message, review.MaxMessage)
	}
	if status != nil && len(others) > 0 {
		klog.FromContext(ctx).Info("Some checks failed; the request is denied already", "err", logtext.Error(errors.Join(others...)))
	}
	return status
}

// undecided returns the error that leaves the request undecided. Codes of API errors below 500 are
// hidden, except 429, because the API server would take a 404 for a missing webhook.
func (r *request) undecided(err error) error {
	if leaves := leavesOf(err); len(leaves) > 1 { // the first decides when to retry
		more := ""
		for _, leaf := range leaves[1:] {
			more += "; " + leaf.Error()
		}
		err = fmt.Errorf("%w%s", leaves[0], more)
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) && api.Status().Code < http.StatusInternalServerError && api.Status().Code != http.StatusTooManyRequests {
		return fmt.Errorf("%s: %v", r, err)
	}
	return fmt.Errorf("%s: %w", r, err)
}

// leavesOf returns the parts of an error that [errors.Join] or an
// [k8s.io/apimachinery/pkg/util/errors.Aggregate] has joined, or the error itself. An error
// that wraps others is one part, because its text has more than theirs.
func leavesOf(err error) []error {
	var all []error
	switch joined := err.(type) {
	case interface{ Unwrap() []error }:
		all = joined.Unwrap()
		if !onlyJoins(err, all) {
			return []error{err}
		}
	case interface{ Errors() []error }:
		all = joined.Errors()
	default:
		return []error{err}
	}
	var leaves []error
	for _, e := range all {
		leaves = append(leaves, leavesOf(e)...)
	}
	return leaves
}

// fieldErrorsOf returns the field errors that an error is, wraps or joins. [errors.As]
// would find one field error only, and no field error in an aggregate.
func fieldErrorsOf(err error) (all field.ErrorList) {
	var inner []error
	switch err := err.(type) {
	case *field.Error:
		return field.ErrorList{err}
	case interface{ Unwrap() error }:
		inner = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = err.Unwrap()
	case interface{ Errors() []error }:
		inner = err.Errors()
	}
	for _, e := range inner {
		all = append(all, fieldErrorsOf(e)...)
	}
	return all
}

// onlyJoins reports whether an error has only the text of the others, like an error of
// [errors.Join]. An error of [fmt.Errorf] with several %w has more.
func onlyJoins(err error, all []error) bool {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}

// denies returns the Status of an error that denies by itself.
func denies(err error) *metav1.Status {
	api, ok := err.(apierrors.APIStatus)
	if !ok {
		return nil
	}
	status := api.Status()
	switch code := status.Code; {
	case code < http.StatusBadRequest, code >= http.StatusInternalServerError:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusNotFound:
		return nil // something that the function itself requested
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return nil // the same request may succeed later
	}
	return &status
}

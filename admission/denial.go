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
)

// denial returns the Status that tells the user why the request is denied; nil if no error
// is a denial. A joined error may have both: then the request is denied, and the log has the
// rest.
func (c *call) denial(ctx context.Context, err error) *metav1.Status {
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
		all := apierrors.NewInvalid(c.kind.GroupKind(), c.objectName(), invalid).Status()
		all.Message = fmt.Sprintf("%s %q is invalid: %v", c.kind.GroupKind(), c.objectName(), utilerrors.NewAggregate(texts))
		if status != nil {
			all.Message += "; " + status.Message
		}
		status = &all
	}
	if status != nil && len(others) > 0 {
		klog.FromContext(ctx).Error(errors.Join(others...), "Some checks failed; the request is denied already")
	}
	return status
}

// undecided returns the error that leaves the request undecided. Of the codes of
// API errors only those stay that say when to try again: a 404 of the webhook
// itself would be taken for a webhook that is not there.
func (c *call) undecided(err error) error {
	if leaves := leavesOf(err); len(leaves) > 1 { // the first says when to try again
		more := ""
		for _, leaf := range leaves[1:] {
			more += "; " + leaf.Error()
		}
		err = fmt.Errorf("%w%s", leaves[0], more)
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) && api.Status().Code < http.StatusInternalServerError && api.Status().Code != http.StatusTooManyRequests {
		return fmt.Errorf("%s: %v", c, err)
	}
	return fmt.Errorf("%s: %w", c, err)
}

// leavesOf returns what was joined in an error, by [errors.Join], by an
// [k8s.io/apimachinery/pkg/util/errors.Aggregate], or not at all. An error that
// wraps others is a leaf, because its text says more than theirs.
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
// would find one of them, and none in an aggregate.
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

// onlyJoins reports whether an error says no more than the others, as that of
// [errors.Join]; [fmt.Errorf] with several %w says more.
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

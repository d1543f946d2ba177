package reference

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// retryAfter is in how many seconds the API server shall ask again.
const retryAfter = 1

// unavailable is an error that the API server may try again in a second. It
// wraps nothing: a NotFound or a Forbidden of our own read must not be taken for
// a verdict about the user's request.
func unavailable(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

// tooMany is the same for what a limit forbids to ask now.
func tooMany(format string, args ...any) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf(format, args...), retryAfter)
}

// notSynced says that the question cannot be answered yet.
func notSynced(resource string) error {
	return unavailable("the informer of %s has not synced yet", resource)
}

// at adds to an error of this package the field that it is about.
func at(path *field.Path, err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Message = path.String() + ": " + status.ErrStatus.Message
	}
	return err
}

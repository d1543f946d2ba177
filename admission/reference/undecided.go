package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// undecided returns an error for a check that failed with err. It does not wrap err, because a
// NotFound or a Forbidden of the webhook's own request must not deny the user's request.
//
// The error has a Retry-After only if the failure may be temporary. Otherwise the API server
// would retry until its timeout, and the user would not see the cause.
func undecided(err error, format string, args ...any) error {
	message := fmt.Sprintf(format, args...) + ": " + err.Error()
	switch seconds, _ := apierrors.SuggestsClientDelay(err); {
	case apierrors.IsTooManyRequests(err):
		return apierrors.NewTooManyRequests(message, max(1, seconds))
	case isTransient(err):
		return unavailable(message)
	}
	return errors.New(message)
}

// unavailable returns an error after which the API server retries in a second.
func unavailable(message string) error {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// isTransient reports whether the same request may succeed in a moment.
func isTransient(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		utilnet.IsTimeout(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

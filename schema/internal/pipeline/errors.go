package pipeline

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxRequest is the size of the largest request that the server reads
	// (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
	MaxRequest = 3 << 20
	// MaxTime is how long the server works at a write
	// (apiserver/pkg/endpoints/handlers/rest.go, requestTimeoutUpperBound).
	MaxTime = 34 * time.Second
)

// Timeout is the server's error of a write whose context has ended
// (apiserver/pkg/endpoints/handlers/finisher/finisher.go, FinishRequest).
func Timeout(ended error) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", ended), 0)
}

// InternalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func InternalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

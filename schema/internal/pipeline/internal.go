package pipeline

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InternalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func InternalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

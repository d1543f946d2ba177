package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
)

type contextKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// RequestFrom returns the request which the function that was given the context
// is called for: the user, the operation, whether it is a dry run, and the text
// of the objects. It must not be changed. Outside such a function ok is false.
func RequestFrom(ctx context.Context) (request *admissionv1.AdmissionRequest, ok bool) {
	c, ok := ctx.Value(contextKey{}).(*call)
	if !ok {
		return nil, false
	}
	return c.request, true
}

// Warn adds a warning to the answer of the request which the function that was
// given the context is called for; kubectl prints it, whether the request is
// denied or not. The API server may truncate it (k8s.io/apiserver/pkg/endpoints/
// filters/warning.go). Outside such a function it does nothing.
func Warn(ctx context.Context, format string, args ...any) {
	if c, ok := ctx.Value(contextKey{}).(*call); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
	}
}

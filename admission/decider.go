package admission

import (
	"context"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decider serves a handler by HTTP, and decides about requests in the same process for package
// admission/plugin.
type decider struct {
	http.Handler
	handler *handler
}

// Wants reports whether there are functions of Mutate, or functions that validate, for a kind.
func (d decider) Wants(kind schema.GroupKind, subresource string, mutate bool) bool {
	functions := d.handler.validators
	if mutate {
		functions = d.handler.mutators
	}
	return slices.ContainsFunc(functions, func(f *function) bool {
		return f.subresource == subresource && (f.kind.Empty() || f.kind.GroupKind() == kind)
	})
}

// Decide calls the functions of Mutate, or those that validate, for a request whose objects are
// JSON in the version of its kind. It returns the response, without a patch, and the mutated
// object, or nil if it stays as it is. An error leaves the request undecided.
func (d decider) Decide(ctx context.Context, request *admissionv1.AdmissionRequest, mutate bool) (response *admissionv1.AdmissionResponse, mutated []byte, err error) {
	h, kind := d.handler, schema.GroupVersionKind(request.Kind)
	c := &call{
		handler: h, memory: &memory{}, kind: kind, operation: request.Operation, subresource: request.SubResource,
		namespace: request.Namespace, name: request.Name, user: request.UserInfo.Username,
		object: request.Object.Raw, oldObject: request.OldObject.Raw, request: request,
	}
	var status *metav1.Status
	h.observe(ctx, func(ctx context.Context) {
		status, err = c.run(ctx, request.UID, func(ctx context.Context) error {
			if err := c.check(); err != nil {
				return err
			}
			if mutate {
				return c.mutate(ctx, true)
			}
			return c.validate(ctx)
		})
		if err != nil {
			noteFailure(ctx, err)
			return
		}
		noteDecision(ctx, status, c.patch())
	})
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	response = &admissionv1.AdmissionResponse{UID: request.UID, Allowed: status == nil, Result: status, Warnings: c.warnings, AuditAnnotations: c.annotations}
	if len(c.patches) > 0 {
		mutated = c.object
	}
	return response, mutated, nil
}

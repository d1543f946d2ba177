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
func (d decider) Decide(ctx context.Context, asked *admissionv1.AdmissionRequest, mutate bool) (response *admissionv1.AdmissionResponse, mutated []byte, err error) {
	c := &call{handler: d.handler, buffers: &buffers{}, request: request{
		uid: asked.UID, kind: schema.GroupVersionKind(asked.Kind), operation: asked.Operation, subresource: asked.SubResource,
		namespace: asked.Namespace, name: asked.Name, user: asked.UserInfo.Username,
		object: asked.Object.Raw, oldObject: asked.OldObject.Raw, decoded: asked,
	}}
	var status *metav1.Status
	c.handler.observe(ctx, func(ctx context.Context) {
		status, err = c.run(ctx, func(ctx context.Context) error {
			if err := c.handler.check(c.kind, c.subresource); err != nil {
				return err
			}
			if mutate {
				return c.mutate(ctx, true)
			}
			return c.validate(ctx)
		})
		if err != nil {
			noteFailure(ctx, err)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	response = &admissionv1.AdmissionResponse{UID: c.uid, Allowed: status == nil, Result: status, Warnings: c.warnings, AuditAnnotations: c.annotations}
	if len(c.patches) > 0 {
		mutated = c.object
	}
	return response, mutated, nil
}

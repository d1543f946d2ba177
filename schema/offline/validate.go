package offline

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// validate calls all validating webhooks: Dispatch of
// apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
func (r *request) validate(ctx context.Context, attr admission.Attributes) error {
	kinds := map[runtimeschema.GroupVersionKind]*admission.VersionedAttributes{}
	versioned := func(kind runtimeschema.GroupVersionKind) (_ *admission.VersionedAttributes, err error) {
		if kinds[kind] == nil {
			kinds[kind], err = r.versionedAttributes(ctx, attr, kind)
		}
		return kinds[kind], err
	}
	var calls []*invocation
	for _, k := range r.resource.validating {
		call, err := r.resource.match(ctx, k, attr, versioned)
		if err != nil {
			return err
		}
		if call == nil {
			continue
		}
		if _, err := versioned(call.kind); err != nil {
			return apierrors.NewInternalError(err)
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 && ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	var first error
	for _, call := range calls {
		_, err := r.call(ctx, call, kinds[call.kind])
		if err := call.verdict(ctx, err); err != nil && first == nil {
			first = err
		}
	}
	return first
}

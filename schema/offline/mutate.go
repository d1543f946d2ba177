package offline

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// mutateObject is mutating admission of an object that is written. Its managedFields, which
// only a webhook can have put there, are taken away, with the server's warning if they are
// invalid (apiserver/pkg/endpoints/handlers/fieldmanager/admission.go).
func (r *request) mutateObject(ctx context.Context, u, old *unstructured.Unstructured, name string) error {
	if err := r.mutate(ctx, r.attributes(u, old, name)); err != nil {
		return err
	}
	if err := managedfields.ValidateManagedFields(u.GetManagedFields()); err != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
	pipeline.RemoveMetadata(u, "managedFields")
	return nil
}

// mutate calls the mutating webhooks, and those again that want to be
// (apiserver/pkg/admission/reinvocation.go, Admit). What changes is the object of attr.
func (r *request) mutate(ctx context.Context, attr admission.Attributes) error {
	state := &reinvocation{}
	if err := r.mutateOnce(ctx, attr, state); err != nil || !state.needed {
		return err
	}
	state.again = true
	return r.mutateOnce(ctx, attr, state)
}

// reinvocation is webhookReinvokeContext of mutating/reinvocationcontext.go.
type reinvocation struct {
	needed, again bool
	invoked, due  sets.Set[*hook]
}

func (s *reinvocation) require() {
	s.needed = true
	s.due = s.due.Union(s.invoked)
	s.invoked = nil
}

// mutateOnce is Dispatch of mutating/dispatcher.go.
func (r *request) mutateOnce(ctx context.Context, attr admission.Attributes, state *reinvocation) error {
	var current *admission.VersionedAttributes
	versioned := func(kind runtimeschema.GroupVersionKind) (*admission.VersionedAttributes, error) {
		if current != nil && current.VersionedKind == kind {
			return current, nil
		}
		err := r.writeBack(ctx, current)
		if err == nil {
			current, err = r.versionedAttributes(ctx, attr, kind)
		}
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return current, nil
	}
	for _, k := range r.resource.mutating {
		var check admission.Attributes = attr
		if current != nil {
			check = current
		}
		call, err := r.resource.match(ctx, k, check, versioned)
		if err != nil {
			return err
		}
		if call == nil || state.again && !state.due.Has(k) {
			continue
		}
		v, err := versioned(call.kind)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		changed, err := r.callMutating(ctx, call, v)
		if changed {
			state.require()
		}
		if *k.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
			state.invoked = state.invoked.Clone().Insert(k)
		}
		if err := k.verdict(ctx, err); err != nil {
			return err
		}
	}
	return r.writeBack(ctx, current)
}

// writeBack puts what the webhooks have changed into the object of the request.
func (r *request) writeBack(ctx context.Context, v *admission.VersionedAttributes) error {
	if v == nil || v.VersionedObject.Object() == nil || !v.Dirty {
		return nil
	}
	out, err := r.resource.convert(ctx, v.VersionedObject.Object().(*unstructured.Unstructured), r.version)
	if err != nil {
		return err
	}
	v.Attributes.GetObject().(*unstructured.Unstructured).Object = out.Object
	v.Dirty = false
	return nil
}

// callMutating calls one webhook: callAttrMutatingHook of mutating/dispatcher.go.
func (r *request) callMutating(ctx context.Context, call *invocation, v *admission.VersionedAttributes) (changed bool, err error) {
	answer, err := r.call(ctx, call, v)
	if err != nil || len(answer.Patch) == 0 {
		return false, err
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		return false, failed(call, "received undecodable patch in webhook response: %w", err)
	}
	if len(patch) == 0 {
		return false, nil
	}
	if v.VersionedObject.Object() == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", call.Name))
	}
	if *answer.PatchType != admissionv1.PatchTypeJSONPatch {
		return false, failed(call, "unsupported patch type %q", *answer.PatchType)
	}
	before := v.VersionedObject.Object().(*unstructured.Unstructured)
	text, err := before.MarshalJSON()
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if text, err = applyPatch(patch, text); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	changed = !apiequality.Semantic.DeepEqual(before, after)
	v.UpdateObject(after)
	r.resource.schemas.SetDefaults(after)
	return changed, nil
}

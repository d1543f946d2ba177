package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/pkg/warning"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// attributes are what admission is told of a request. The objects are nil where there is
// none, and are in the version of the request.
func (r *request) attributes(object, old *unstructured.Unstructured, name string) admission.Attributes {
	var o, was runtime.Object
	if object != nil {
		o = object
	}
	if old != nil {
		was = old
	}
	return admission.NewAttributesRecord(o, was, r.gvk(r.requested), r.namespace, name, r.gvr(r.requested), r.subresource,
		r.operation, r.options(), r.dryRun, userInfo{r.user})
}

// versionedAttributes is NewVersionedAttributes of apiserver/pkg/admission/conversion.go.
func (r *request) versionedAttributes(ctx context.Context, attr admission.Attributes, kind runtimeschema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	v := &admission.VersionedAttributes{Attributes: attr, VersionedKind: kind}
	for _, o := range []struct {
		from runtime.Object
		to   *admission.LazyObject
	}{{attr.GetOldObject(), &v.VersionedOldObject}, {attr.GetObject(), &v.VersionedObject}} {
		if o.from == nil {
			continue
		}
		out, err := r.convert(ctx, o.from.(*unstructured.Unstructured), kind.Version)
		if err != nil {
			return nil, err
		}
		o.to.Set(out)
	}
	return v, nil
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
	for _, k := range r.Resource.mutating {
		var check admission.Attributes = attr
		if current != nil {
			check = current
		}
		call, err := k.matches(ctx, check, r.equivalents, versioned)
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
	out, err := r.convert(ctx, v.VersionedObject.Object().(*unstructured.Unstructured), r.requested)
	if err != nil {
		return err
	}
	v.Attributes.GetObject().(*unstructured.Unstructured).Object = out.Object
	v.Dirty = false
	return nil
}

// verdict is what becomes of the error of a call.
func (k *hook) verdict(ctx context.Context, err error) error {
	var failed *webhookutil.ErrCallingWebhook
	var rejected *webhookutil.ErrWebhookRejection
	switch {
	case errors.As(err, &rejected):
		return rejected.Status
	case !errors.As(err, &failed):
		return err
	case !k.ignoreCallFailure:
		return apierrors.NewInternalError(failed)
	case k.mutating && ctx.Err() != nil:
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
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
	if text, err = patch.Apply(text); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	changed = !apiequality.Semantic.DeepEqual(before, after)
	v.UpdateObject(after)
	r.schemas.SetDefaults(after)
	return changed, nil
}

// validate calls all validating webhooks: Dispatch of validating/dispatcher.go.
func (r *request) validate(ctx context.Context, attr admission.Attributes) error {
	kinds := map[runtimeschema.GroupVersionKind]*admission.VersionedAttributes{}
	versioned := func(kind runtimeschema.GroupVersionKind) (_ *admission.VersionedAttributes, err error) {
		if kinds[kind] == nil {
			kinds[kind], err = r.versionedAttributes(ctx, attr, kind)
		}
		return kinds[kind], err
	}
	var calls []*invocation
	for _, k := range r.Resource.validating {
		call, err := k.matches(ctx, attr, r.equivalents, versioned)
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

// call sends a review and reads the answer, which allows the request: callHook of
// validating/dispatcher.go and the half of mutating/dispatcher.go that is the same.
func (r *request) call(ctx context.Context, call *invocation, v *admission.VersionedAttributes) (*admissionv1.AdmissionResponse, error) {
	if side := *call.SideEffects; v.IsDryRun() && side != admissionregistrationv1.SideEffectClassNone && side != admissionregistrationv1.SideEffectClassNoneOnDryRun {
		return nil, webhookerrors.NewDryRunUnsupportedErr(call.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*call.TimeoutSeconds)*time.Second)
	defer cancel()
	uid := r.reviewUID()
	question, read := newReview(call, v, uid)
	post := call.client.Post().Body(question)
	deadline, _ := ctx.Deadline()
	if timeout := time.Until(deadline); timeout > 0 {
		if whole := timeout.Truncate(time.Second); whole != timeout {
			timeout = whole + time.Second
		}
		post.Timeout(timeout)
	}
	if err := post.Do(ctx).Into(read.into); err != nil {
		return nil, failed(call, "failed to call webhook: %w", err)
	}
	answer, err := read.verify(uid, call.mutating)
	if err != nil {
		return nil, failed(call, "received invalid webhook response: %w", err)
	}
	for _, w := range answer.Warnings {
		warning.AddWarning(ctx, "", w)
	}
	if !answer.Allowed {
		return nil, &webhookutil.ErrWebhookRejection{Status: webhookerrors.ToStatusErr(call.Name, answer.Result)}
	}
	return answer, nil
}

// failed is the error of a webhook that was not heard.
func failed(call *invocation, format string, args ...any) error {
	return &webhookutil.ErrCallingWebhook{WebhookName: call.Name, Reason: fmt.Errorf(format, args...)}
}

// replace makes an object what another one is, in place.
func replace(object, by map[string]any) {
	if by = maps.Clone(by); by != nil {
		clear(object)
		maps.Copy(object, by)
	}
}

package offline

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
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
	return admission.NewAttributesRecord(o, was, r.resource.gvk(r.version), r.namespace, name, r.resource.gvr(r.version), r.subresource,
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
		out, err := r.resource.convert(ctx, o.from.(*unstructured.Unstructured), kind.Version)
		if err != nil {
			return nil, err
		}
		if out.GetKind() != kind.Kind { // a patch has changed it, which validation will find
			out = out.DeepCopy()
			out.SetKind(kind.Kind)
		}
		o.to.Set(out)
	}
	return v, nil
}

// verdict is what the error of a call means for the request.
func (k *hook) verdict(ctx context.Context, err error) error {
	var failed *webhookutil.ErrCallingWebhook
	var rejected *webhookutil.ErrWebhookRejection
	switch {
	case errors.As(err, &rejected):
		return rejected.Status
	case !errors.As(err, &failed):
		return err
	case !k.ignored():
		return apierrors.NewInternalError(failed)
	case k.mutating && ctx.Err() != nil:
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	return nil
}

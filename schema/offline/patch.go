package offline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	kjson "sigs.k8s.io/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/crdkit/crdkit/schema"
)

// Patch changes an object with a patch, which is a JSON merge patch or a JSON patch, and is
// an update otherwise: see [Resource.Update]. The patch is applied to the object in the
// version of the request. Without a namespace, that is default.
//
// Of the other types of patches, a server knows server-side apply for custom resources; it
// is not simulated (apiserver/pkg/endpoints/handlers/patch.go).
func (r *Resource) Patch(ctx context.Context, version, namespace, name string, patchType types.PatchType, patch []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.patch(ctx, version, namespace, name, patchType, patch, "", opts)
}

// PatchStatus is [Resource.Patch] by way of the status subresource.
func (r *Resource) PatchStatus(ctx context.Context, version, namespace, name string, patchType types.PatchType, patch []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.patch(ctx, version, namespace, name, patchType, patch, "status", opts)
}

func (r *Resource) patch(ctx context.Context, version, namespace, name string, patchType types.PatchType, patch []byte, subresource string, opts []RequestOption) (*schema.Result, error) {
	req, err := r.begin(version, "patch", admission.Update, opts)
	if err != nil {
		return req.fail(err)
	}
	req.subresource = subresource
	var patched []byte
	out, err := req.update(ctx, r.key(namespace, name), func(read func() (*unstructured.Unstructured, error)) ([]byte, error) {
		old, err := read()
		if err != nil {
			return nil, err
		}
		patched, err = req.apply(old, patchType, patch)
		return patched, err
	})
	return out, patchError(err, r.gvk(version), patched)
}

// apply is applyJSPatch of handlers/patch.go.
func (r *request) apply(old *unstructured.Unstructured, patchType types.PatchType, patch []byte) ([]byte, error) {
	text, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var patched []byte
	switch patchType {
	case types.JSONPatchType:
		if err := r.decodePatch(patch, &[]jsonPatchOp{}, "json patch "); err != nil {
			return nil, err
		}
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		const most = 10000
		if len(p) > most {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", most, len(p)))
		}
		if patched, err = p.Apply(text); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", runtimeschema.GroupResource{}, "", err.Error(), 0, false)
		}
	case types.MergePatchType:
		if err := r.decodePatch(patch, &map[string]any{}, ""); err != nil {
			return nil, err
		}
		patched, err = jsonpatch.MergePatch(text, patch)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w: a patch of type %s is not supported: there are %s and %s", errHere, patchType, types.MergePatchType, types.JSONPatchType)
	}
	return patched, nil
}

// jsonPatchOp is the type of that name in handlers/patch.go, and errors name it.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// decodePatch looks for fields of a patch that are there twice, or unknown.
func (r *request) decodePatch(patch []byte, into any, prefix string) error {
	if r.directive == metav1.FieldValidationIgnore {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(patch, into)
	if err != nil {
		return apierrors.NewBadRequest("error decoding patch: " + strings.Replace(err.Error(), "offline.jsonPatchOp", "handlers.jsonPatchOp", 1))
	}
	for i, err := range strict {
		strict[i] = fmt.Errorf("%s%w", prefix, err)
	}
	if len(strict) > 0 && r.directive == metav1.FieldValidationStrict {
		return apierrors.NewInvalid(runtimeschema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(patch), runtime.NewStrictDecodingError(strict).Error()),
		})
	}
	for _, err := range strict {
		r.warn(err.Error())
	}
	return nil
}

// patchError is the error of a patched object that cannot be decoded, which an update words
// in another way (applyPatchToCurrentObject of handlers/patch.go).
func patchError(err error, kind runtimeschema.GroupVersionKind, patched []byte) error {
	if !apierrors.IsBadRequest(err) {
		return err
	}
	_, reason, ok := strings.Cut(err.Error(), fmt.Sprintf(" in version %q cannot be handled as a %s: ", kind.Version, kind.Kind))
	if !ok {
		return err
	}
	return apierrors.NewInvalid(runtimeschema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(patched), reason)})
}

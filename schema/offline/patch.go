package offline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	kjson "sigs.k8s.io/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Patch changes an object with a JSON merge patch or a JSON patch. The patch is applied to
// the object in the version of the request. What comes after that is an update: see
// [Resource.Update]. Without a namespace, that is default.
//
// A server has server-side apply too, which is not simulated: with
// [types.ApplyYAMLPatchType] the error says so. Any other type is an error of the server,
// UnsupportedMediaType: custom resources have no strategic merge patch
// (apiserver/pkg/endpoints/handlers/patch.go).
func (r *Resource) Patch(ctx context.Context, version, namespace, name string, patchType types.PatchType, patch []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.patch(ctx, version, namespace, name, patchType, patch, "", opts)
}

// PatchStatus is [Resource.Patch] by way of the status subresource: nothing but the status
// changes. If the version has no such subresource, the error is NotFound.
func (r *Resource) PatchStatus(ctx context.Context, version, namespace, name string, patchType types.PatchType, patch []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.patch(ctx, version, namespace, name, patchType, patch, "status", opts)
}

func (r *Resource) patch(ctx context.Context, version, namespace, name string, patchType types.PatchType, text []byte, subresource string, opts []RequestOption) (*schema.Result, error) {
	req := &request{version: version, namespace: namespace, subresource: subresource, operation: admission.Update}
	return r.serve(ctx, req, "patch", opts, func(ctx context.Context) (*schema.Result, error) {
		key, err := req.key(name)
		if err != nil {
			return nil, err
		}
		p := &patcher{request: req, patchType: patchType, text: text}
		if err := p.check(name); err != nil {
			return nil, err
		}
		w := &replacement{request: req, key: key, decoded: p.decoded}
		w.body = func(ctx context.Context) ([]byte, error) {
			old, err := w.read(ctx)
			if err != nil {
				return nil, err
			}
			return p.apply(old)
		}
		return w.run(ctx)
	})
}

// patcher applies a patch: jsonPatcher of handlers/patch.go.
type patcher struct {
	*request
	patchType types.PatchType
	text      []byte

	faults  []error // of the patch, found by strict decoding
	patched []byte  // the object
}

// check is what the server looks at before it reads the object: PatchResource.
func (p *patcher) check(name string) error {
	if p.subresource == "status" {
		if s := p.resource.spec(p.version).Subresources; s == nil || s.Status == nil {
			return apierrors.NewNotFound(p.resource.groupResource(), name)
		}
	}
	switch p.patchType {
	case types.JSONPatchType, types.MergePatchType:
	case types.ApplyYAMLPatchType:
		return ownError(fmt.Errorf("a patch of type %s is not supported: there are %s and %s", p.patchType, types.MergePatchType, types.JSONPatchType))
	default:
		// handlers/negotiation/errors.go, NewUnsupportedMediaTypeError.
		accepted := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
		}}
	}
	if len(p.text) > pipeline.MaxRequest {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", pipeline.MaxRequest))
	}
	if errs := metav1validation.ValidatePatchOptions(&metav1.PatchOptions{FieldValidation: p.directive}, p.patchType); len(errs) > 0 {
		return apierrors.NewInvalid(runtimeschema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}

// apply is applyJSPatch.
func (p *patcher) apply(old *unstructured.Unstructured) ([]byte, error) {
	text, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if p.patchType == types.JSONPatchType {
		p.patched, err = p.applyJSONPatch(text)
	} else {
		p.patched, err = p.applyMergePatch(text)
	}
	return p.patched, err
}

func (p *patcher) applyJSONPatch(text []byte) ([]byte, error) {
	if err := p.decode(&[]jsonPatchOp{}, "json patch "); err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(p.text)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	const most = 10000
	if len(patch) > most {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", most, len(patch)))
	}
	patched, err := applyPatch(patch, text)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", runtimeschema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, nil
}

func (p *patcher) applyMergePatch(text []byte) ([]byte, error) {
	if err := p.decode(&map[string]any{}, ""); err != nil {
		return nil, err
	}
	patched, err := jsonpatch.MergePatch(text, p.text)
	if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return patched, err
}

// jsonPatchOp is the type of that name in handlers/patch.go.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// decode looks for fields of the patch that are unknown, or there twice. If the patch is
// something else, the server's error has its name for the type.
func (p *patcher) decode(into any, prefix string) error {
	p.faults = nil
	if p.directive == metav1.FieldValidationIgnore {
		return nil
	}
	faults, err := kjson.UnmarshalStrict(p.text, into)
	if err != nil {
		return apierrors.NewBadRequest("error decoding patch: " + strings.ReplaceAll(err.Error(), reflect.TypeFor[jsonPatchOp]().String(), "handlers.jsonPatchOp"))
	}
	for _, err := range faults {
		p.faults = append(p.faults, fmt.Errorf("%s%w", prefix, err))
	}
	return nil
}

// decoded says what it means that the patched object has been decoded, with an error or
// without: the faults of the patch count too (applyPatchToCurrentObject).
func (p *patcher) decoded(err error) error {
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if err != nil && !isStrict {
		return p.invalid(err)
	}
	if p.directive != metav1.FieldValidationStrict {
		for _, err := range p.faults {
			p.warn(err.Error())
		}
		return nil
	}
	faults := p.faults
	if isStrict {
		faults = append(faults, strict.Errors()...)
	}
	if len(faults) > 0 {
		return p.invalid(runtime.NewStrictDecodingError(faults))
	}
	return nil
}

func (p *patcher) invalid(err error) error {
	return apierrors.NewInvalid(runtimeschema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(p.patched), err.Error())})
}

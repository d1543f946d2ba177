package admission

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// call is one request on its way through the functions.
type call struct {
	handler           *handler
	request           *admissionv1.AdmissionRequest
	object, oldObject []byte // text, in the version of the request; nil if there is none
	patch             [][]byte
	warnings          []string
}

func (c *call) kind() schema.GroupVersionKind { return schema.GroupVersionKind(c.request.Kind) }

// String names the object as users know it.
func (c *call) String() string {
	switch {
	case c.request.Name == "":
		return c.request.Kind.Kind
	case c.request.Namespace == "":
		return c.request.Kind.Kind + " " + c.request.Name
	default:
		return c.request.Kind.Kind + " " + c.request.Namespace + "/" + c.request.Name
	}
}

func (c *call) decide(ctx context.Context) (*admissionv1.AdmissionResponse, error) {
	if err := c.handler.serves(c.kind()); err != nil {
		return nil, err
	}
	if c.request.SubResource != "" {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	err := c.mutate(ctx)
	if err == nil {
		err = c.validate(ctx)
	}
	if err != nil {
		status, denied := c.denial(err)
		if !denied {
			return nil, err
		}
		return &admissionv1.AdmissionResponse{Result: status}, nil
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if len(c.patch) > 0 {
		response.Patch = joinPatches(c.patch)
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	return response, nil
}

// serves returns an error if no function could be called for a kind.
func (h *handler) serves(kind schema.GroupVersionKind) error {
	var versions []string
	for _, f := range h.kinds {
		if h.calls(f, kind) {
			return nil
		}
		if f.GroupKind() == kind.GroupKind() && !slices.Contains(versions, f.Version) {
			versions = append(versions, f.Version)
		}
	}
	if len(versions) == 0 {
		return fmt.Errorf("no function is registered for kind %s", kind.GroupKind())
	}
	return fmt.Errorf("the functions for kind %s are for version %s, not %s: use ConvertWith, or add functions for %s",
		kind.GroupKind(), strings.Join(versions, " and "), kind.Version, kind.Version)
}

// calls says whether a function for one kind is called with objects of another.
func (h *handler) calls(function, kind schema.GroupVersionKind) bool {
	return function == kind || h.converter != nil && function.GroupKind() == kind.GroupKind()
}

// denial returns the Status that tells the user why the request is denied. An
// error that is no denial leaves the request undecided.
func (c *call) denial(err error) (*metav1.Status, bool) {
	var invalid *invalidError
	if errors.As(err, &invalid) {
		status := apierrors.NewInvalid(c.kind().GroupKind(), c.request.Name, invalid.errs).Status()
		return &status, true
	}
	var fieldErr *field.Error
	if errors.As(err, &fieldErr) {
		status := apierrors.NewInvalid(c.kind().GroupKind(), c.request.Name, field.ErrorList{fieldErr}).Status()
		return &status, true
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status := api.Status()
		switch code := status.Code; {
		case code == 408, code == 429: // not now is not never
		case code >= 400 && code < 500:
			return &status, true
		}
	}
	return nil, false
}

// invalidError carries the field errors of a validating function.
type invalidError struct{ errs field.ErrorList }

func (e *invalidError) Error() string { return e.errs.ToAggregate().Error() }

// decode returns the object as the Go type of a kind, converted if need be.
func (c *call) decode(ctx context.Context, text []byte, kind schema.GroupVersionKind, newObject func() runtime.Object) (runtime.Object, error) {
	text, err := c.convert(ctx, text, c.kind().GroupVersion(), kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	obj := newObject()
	// The API server's own decoder of JSON: case-sensitive, and lenient otherwise.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, obj); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s does not fit %T: %v", c, obj, err))
	}
	return obj, nil
}

// convert converts the text of an object between versions, if they differ.
func (c *call) convert(ctx context.Context, text []byte, from, to schema.GroupVersion) ([]byte, error) {
	if from == to {
		return text, nil
	}
	return c.handler.converter.Convert(ctx, text, to)
}

// guard calls a function of the author. A panic becomes an error, and reaches
// the log with its stack.
func (c *call) guard(ctx context.Context, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", v), "Admission function panicked",
				"kind", c.request.Kind.Kind, "object", klog.KRef(c.request.Namespace, c.request.Name),
				"operation", c.request.Operation, "uid", c.request.UID, "stack", string(debug.Stack()))
			err = fmt.Errorf("the admission function panicked: %v", v)
		}
	}()
	return f()
}

// apply adds a patch to the answer, and applies it to the object, for the
// functions that follow. It is applied with the API server's own library.
func (c *call) apply(patch []byte) error {
	if patch == nil {
		return nil
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return err
	}
	if c.object, err = decoded.Apply(c.object); err != nil {
		return err
	}
	c.patch = append(c.patch, patch)
	return nil
}

// joinPatches makes one patch of several that apply to each other's results.
func joinPatches(patches [][]byte) []byte {
	if len(patches) == 1 {
		return patches[0]
	}
	joined := []byte{'['}
	for _, patch := range patches {
		for op, err := range rawjson.Elements(patch) {
			if err != nil { // each has been decoded before
				panic(err)
			}
			if len(joined) > 1 {
				joined = append(joined, ',')
			}
			joined = append(joined, op...)
		}
	}
	return append(joined, ']')
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/kinds"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// call is one request on its way through the functions.
type call struct {
	handler           *handler
	request           *admissionv1.AdmissionRequest
	object, oldObject []byte // text, in the version of the request; nil if there is none
	patch             [][]byte

	mu       sync.Mutex // a function may warn from several goroutines
	warnings []string
}

func (c *call) kind() schema.GroupVersionKind { return schema.GroupVersionKind(c.request.Kind) }

// String names the object as users know it.
func (c *call) String() string {
	return kinds.Name(c.request.Kind.Kind, c.request.Namespace, c.request.Name)
}

func (c *call) decide(ctx context.Context) (*admissionv1.AdmissionResponse, error) {
	if c.request.SubResource != "" {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	if err := c.handler.serves(c.kind()); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
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

// complete returns an error if the request lacks an object that its operation has.
func (c *call) complete() error {
	op := c.request.Operation
	if (op == admissionv1.Create || op == admissionv1.Update) && c.object == nil {
		return fmt.Errorf("the request for %s has no object", op)
	}
	if (op == admissionv1.Update || op == admissionv1.Delete) && c.oldObject == nil {
		return fmt.Errorf("the request for %s has no oldObject", op)
	}
	return nil
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

// decode returns the object as the Go type of a kind, converted if need be.
func (c *call) decode(ctx context.Context, text []byte, kind schema.GroupVersionKind, newObject func() runtime.Object) (runtime.Object, error) {
	converted, err := c.convert(ctx, text, c.kind().GroupVersion(), kind.GroupVersion())
	if err != nil {
		return nil, errors.Join(c.misfit(text), err)
	}
	obj := newObject()
	if err := decode(converted, obj); err != nil {
		return nil, fmt.Errorf("%w: %w", errMisfit, err)
	}
	return obj, nil
}

// errMisfit says that the text of an object does not fit its Go type.
var errMisfit = errors.New("the object does not fit its Go type")

// misfit returns an error if the text does not fit the Go type of its own version:
// then it is no wonder that it could not be converted.
func (c *call) misfit(text []byte) error {
	obj, err := c.handler.scheme.New(c.kind())
	if err != nil {
		return nil
	}
	if err := decode(text, obj); err != nil {
		return fmt.Errorf("%w: %w", errMisfit, err)
	}
	return nil
}

// decode decodes JSON with the API server's own decoder: case-sensitive, and
// lenient otherwise.
func decode(text []byte, into runtime.Object) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
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

package admission

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
)

// request is an AdmissionRequest, as far as the handler needs it.
type request struct {
	uid         types.UID
	kind        schema.GroupVersionKind
	operation   admissionv1.Operation
	subresource string
	namespace   string
	name        string
	user        string

	object, oldObject []byte                        // JSON in the version of the request, or nil
	raw               []byte                        // the JSON of all of it
	decoded           *admissionv1.AdmissionRequest // once a function has called RequestFrom
}

// readRequest reads the members of a request that the handler itself needs. v1 and v1beta1 have the same
// members.
func (h *handler) readRequest(req *review.Request) (r request, err error) {
	malformed := func(name string, text []byte) {
		if err == nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("malformed request.%s: %.100s", name, text))
		}
	}
	var kind []byte
	for name := range req.Members {
		text, ok := req.Cursor.Value(), true
		if string(text) == "null" {
			text = nil
		}
		switch string(name) {
		case "kind":
			kind = text
		case "subResource":
			r.subresource, ok = stringOf(text)
		case "name":
			r.name, ok = stringOf(text)
		case "namespace":
			r.namespace, ok = stringOf(text)
		case "operation":
			var operation string
			operation, ok = stringOf(text)
			r.operation = admissionv1.Operation(operation)
		case "object":
			r.object = text
		case "oldObject":
			r.oldObject = text
		case "userInfo":
			r.user, _ = rawjson.String(rawjson.At(text, "username"))
		}
		if !ok {
			malformed(string(name), text)
		}
	}
	var ok bool
	if r.kind, ok = kindOf(kind); !ok {
		malformed("kind", kind)
	}
	r.uid, r.raw = req.UID, req.Raw
	return r, cmp.Or(req.End(nil), err)
}

// stringOf decodes a string. It returns an empty string without a text.
func stringOf(text []byte) (s string, ok bool) {
	if text == nil {
		return "", true
	}
	return rawjson.String(text)
}

// kindOf decodes the kind of a request.
func kindOf(text []byte) (kind schema.GroupVersionKind, ok bool) {
	group, hasGroup := stringOf(rawjson.At(text, "group"))
	version, hasVersion := stringOf(rawjson.At(text, "version"))
	name, hasName := rawjson.String(rawjson.At(text, "kind"))
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}, hasGroup && hasVersion && hasName
}

// String returns the kind, the namespace and the name of the object.
func (r *request) String() string { return gvk.Name(r.kind.Kind, r.namespace, r.objectName()) }

// objectName returns the name of the object. The name in the request is empty if the API
// server has yet to generate it, and when a collection is deleted.
func (r *request) objectName() string {
	if r.name != "" {
		return r.name
	}
	for _, object := range [][]byte{r.object, r.oldObject} {
		for _, member := range []string{"name", "generateName"} {
			if name, _ := rawjson.String(rawjson.At(object, "metadata", member)); name != "" {
				return name
			}
		}
	}
	return ""
}

// scope is the call in the context of a function. It is over when the function returns,
// because another request then reuses the memory.
type scope struct {
	*call
	sees schema.GroupVersionKind // the kind and version of the function's object
	over bool
}

type contextKey struct{}

// enter returns a context for a function, and a function that ends the scope.
func (c *call) enter(ctx context.Context, sees schema.GroupVersionKind) (_ context.Context, end func()) {
	s := &scope{call: c, sees: sees}
	return context.WithValue(ctx, contextKey{}, s), func() {
		c.mu.Lock()
		s.over = true
		c.mu.Unlock()
	}
}

// lock locks the call of a context and returns its scope. Outside a function, and when the
// function has returned, it returns nil and locks nothing.
func lock(ctx context.Context) *scope {
	s, _ := ctx.Value(contextKey{}).(*scope)
	if s == nil {
		return nil
	}
	if s.mu.Lock(); s.over {
		s.mu.Unlock()
		return nil
	}
	return s
}

// RequestFrom returns the request being handled; ctx must be the context passed to your function,
// or derived from it. The request has the user, the operation, the options, and the JSON of the
// objects as the API server sent them, and must not be modified. DryRun is never nil; if it points
// to true, your function must not have side effects.
//
// The result ok is false if ctx is another context, if your function has returned, or if the
// request cannot be decoded as an AdmissionRequest.
func RequestFrom(ctx context.Context) (request *admissionv1.AdmissionRequest, ok bool) {
	s := lock(ctx)
	if s == nil {
		return nil, false
	}
	defer s.mu.Unlock()
	if s.decoded == nil {
		request := &admissionv1.AdmissionRequest{}
		if json.Unmarshal(s.raw, request) != nil {
			return nil, false
		}
		s.decoded = request
	}
	if s.decoded.DryRun == nil {
		s.decoded.DryRun = new(false)
	}
	return s.decoded, true
}

// WithRequest returns a context for tests that call an admission function without a handler.
// In this context, the functions of this package behave as follows:
//
//   - [RequestFrom] returns the request.
//   - [OldFrom] decodes the old object of the request as type T. It checks no kind and
//     converts no version.
//   - [Warn] discards the warning.
//   - [AuditAnnotation] checks the key, and discards the annotation.
func WithRequest(ctx context.Context, asked *admissionv1.AdmissionRequest) context.Context {
	kind := schema.GroupVersionKind(asked.Kind)
	old := asked.OldObject.Raw
	if old == nil && asked.OldObject.Object != nil {
		old, _ = json.Marshal(asked.OldObject.Object) // without an encoding there is no object
	}
	if string(old) == "null" {
		old = nil
	}
	c := &call{request: request{decoded: asked.DeepCopy(), kind: kind, oldObject: old}}
	ctx, _ = c.enter(ctx, kind)
	return ctx
}

// OldFrom returns the stored object, before the UPDATE or DELETE being handled; ctx must be the
// context passed to your function, or derived from it. T is one of the types that [Mutate] accepts.
// The object is converted to the version of T, or for *unstructured.Unstructured and
// *metav1.PartialObjectMetadata, to the version that your function sees.
//
// OldFrom returns nil and no error if the operation has no old object (CREATE and CONNECT), if
// ctx is another context, or if your function has returned. It returns an error in these
// cases:
//
//   - The scheme has no kind for T, or T is of another kind than the request.
//   - T is of another version than the request, and the handler has no [ConvertWith].
//   - The object does not fit the Go type, or cannot be converted.
//
// If your function returns this error, the request is left undecided.
func OldFrom[T runtime.Object](ctx context.Context) (old T, err error) {
	s := lock(ctx)
	if s == nil {
		return old, nil
	}
	c, text, kind := s.call, bytes.Clone(s.oldObject), s.sees // the call may end meanwhile
	s.mu.Unlock()
	if text == nil {
		return old, nil
	}
	t := reflect.TypeFor[T]()
	if !everyKind(t) && c.handler != nil {
		if kind, err = gvk.Of(c.handler.scheme, t); err != nil {
			return old, fmt.Errorf("admission: %w", err)
		}
		if kind != c.kind && (c.handler.converter == nil || kind.GroupKind() != c.kind.GroupKind()) {
			return old, fmt.Errorf("admission: the request is for %s, and not for %s", c.kind, kind)
		}
	}
	var form *codec.Form
	if c.handler != nil {
		if i := slices.IndexFunc(c.handler.functions, func(f *function) bool { return f.goType == t }); i >= 0 {
			form = c.handler.functions[i].form
		}
	}
	if form == nil {
		form = codec.New().Form(t)
	}
	obj, err := c.decode(ctx, &codec.Arena{}, text, kind, form, true)
	if err != nil {
		return old, stored(err)
	}
	return obj.(T), nil
}

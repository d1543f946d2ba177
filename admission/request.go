package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
)

// memberNames are the members of a request that the handler itself needs. The others are
// decoded when a function calls RequestFrom. v1 and v1beta1 have the same members.
var memberNames = []string{"kind", "subResource", "name", "namespace", "operation", "object", "oldObject", "userInfo"}

// members has the JSON of these members, nil if a member is absent.
type members struct{ texts [8][]byte }

func (m *members) Reset(bool) { *m = members{} }

func (m *members) Read(name []byte, c *rawjson.Cursor) error {
	text := c.Value()
	if i := slices.Index(memberNames, string(name)); i >= 0 {
		m.texts[i] = text
	}
	return nil
}

// read reads the members of a request.
func (c *call) read(req *review.Request) error {
	c.raw = req.Raw
	var operation string
	var user []byte
	for i, into := range []any{&c.kind, &c.subresource, &c.name, &c.namespace, &operation, &c.object, &c.oldObject, &user} {
		text, ok := req.Members.(*members).texts[i], true
		if string(text) == "null" {
			text = nil
		}
		switch into := into.(type) {
		case *schema.GroupVersionKind:
			*into, ok = c.handler.kindOf(text)
		case *[]byte:
			*into = text
		case *string:
			if text != nil {
				*into, ok = rawjson.String(text)
			}
		}
		if !ok {
			return apierrors.NewBadRequest(fmt.Sprintf("malformed request.%s: %.100s", memberNames[i], text))
		}
	}
	c.operation = admissionv1.Operation(operation)
	c.user, _ = rawjson.String(rawjson.At(user, "username"))
	return nil
}

// kindOf decodes the kind of a request.
func (h *handler) kindOf(text []byte) (kind schema.GroupVersionKind, ok bool) {
	if kind, ok = h.kindTexts[string(text)]; !ok {
		var decoded schema.GroupVersionKind
		ok = json.Unmarshal(text, &decoded) == nil
		kind = decoded
	}
	return kind, ok
}

// kindText returns the JSON of a kind as the API server writes it.
func kindText(kind schema.GroupVersionKind) string {
	b := rawjson.AppendQuote([]byte(`{"group":`), kind.Group)
	b = rawjson.AppendQuote(append(b, `,"version":`...), kind.Version)
	b = rawjson.AppendQuote(append(b, `,"kind":`...), kind.Kind)
	return string(append(b, '}'))
}

// String returns the kind, the namespace and the name of the object.
func (c *call) String() string { return gvk.Name(c.kind.Kind, c.namespace, c.objectName()) }

// objectName returns the name of the object. The name in the request is empty if the API
// server has yet to generate it, and when a collection is deleted.
func (c *call) objectName() string {
	if c.name != "" {
		return c.name
	}
	for _, object := range [][]byte{c.object, c.oldObject} {
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
	if s.request == nil {
		request := &admissionv1.AdmissionRequest{}
		if json.Unmarshal(s.raw, request) != nil {
			return nil, false
		}
		if request.DryRun == nil {
			request.DryRun = new(false)
		}
		s.request = request
	}
	return s.request, true
}

// WithRequest returns a context for tests that call an admission function without a handler.
// In this context, the functions of this package behave as follows:
//
//   - [RequestFrom] returns the request.
//   - [OldFrom] decodes the old object of the request as type T. It checks no kind and
//     converts no version.
//   - [Warn] discards the warning.
//   - [AuditAnnotation] checks the key, and discards the annotation.
func WithRequest(ctx context.Context, request *admissionv1.AdmissionRequest) context.Context {
	kind := schema.GroupVersionKind(request.Kind)
	old := request.OldObject.Raw
	if old == nil && request.OldObject.Object != nil {
		old, _ = json.Marshal(request.OldObject.Object) // without an encoding there is no object
	}
	if string(old) == "null" {
		old = nil
	}
	c := &call{request: request.DeepCopy(), kind: kind, oldObject: old}
	if c.request.DryRun == nil {
		c.request.DryRun = new(false)
	}
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
	var as representation
	if c.handler != nil {
		as = c.handler.representations[t]
	}
	if !everyKind(t) && c.handler != nil {
		if kind, err = gvk.Of(c.handler.scheme, t); err != nil {
			return old, fmt.Errorf("admission: %w", err)
		}
		if kind != c.kind && (c.handler.converter == nil || kind.GroupKind() != c.kind.GroupKind()) {
			return old, fmt.Errorf("admission: the request is for %s, and not for %s", c.kind, kind)
		}
	}
	if as == nil {
		as = newRepresentation(codec.New(), t)
	}
	obj, err := c.decode(ctx, &codec.Memory{}, text, kind, as, true)
	if err != nil {
		return old, stored(err)
	}
	return obj.(T), nil
}

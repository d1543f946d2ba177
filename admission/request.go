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

// memberNames are the members of a request that decide what is to be done; the others are
// decoded when a function asks for them. The requests of v1 and of v1beta1 have the same.
var memberNames = []string{"kind", "subResource", "name", "namespace", "operation", "object", "oldObject", "userInfo"}

// members are their texts; that of an absent one is nil.
type members struct{ texts [8][]byte }

func (m *members) Reset() { *m = members{} }

func (m *members) Read(name []byte, c *rawjson.Cursor) error {
	text := c.Value()
	if i := slices.Index(memberNames, string(name)); i >= 0 {
		m.texts[i] = text
	}
	return nil
}

// read takes what the call needs from a request.
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

// kindText is a kind as the API server writes it.
func kindText(kind schema.GroupVersionKind) string {
	b := rawjson.AppendQuote([]byte(`{"group":`), kind.Group)
	b = rawjson.AppendQuote(append(b, `,"version":`...), kind.Version)
	b = rawjson.AppendQuote(append(b, `,"kind":`...), kind.Kind)
	return string(append(b, '}'))
}

// String names the object as users know it.
func (c *call) String() string { return gvk.Name(c.kind.Kind, c.namespace, c.objectName()) }

// objectName returns the name of the object. In the request it is empty if the API server
// has yet to generate it, and when a collection is deleted.
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

// scope is the call in the context of a function. It is over when the function returns: the
// memory of the request's text is used for another request then.
type scope struct {
	*call
	sees schema.GroupVersionKind // the kind and version that the function is given
	over bool
}

type contextKey struct{}

// enter returns a context for a function, and what ends it.
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

// RequestFrom returns the request which the function that was given the context is
// called for: the user, the operation, the options, and the text of the objects as the
// API server sent them. DryRun is not nil: if it points to true, the function must have
// no side effects. The request must not be changed. Outside such a function, and when it
// has returned, ok is false; so it is if the request does not fit its Go type.
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

// WithRequest returns a context such as functions are given, for tests that call one
// without a handler: [RequestFrom] returns the request, and [OldFrom] decodes the text of
// its old object as the type that is asked for. Warnings and audit annotations go nowhere.
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

// OldFrom returns the object as it was before the UPDATE or DELETE which the function
// that was given the context is called for. It is converted, if need be, to the version
// of T, or, if T has none, to that in which the function sees the object. It is nil on
// another operation, and outside such a function. T is a type that [Mutate] takes. It is an
// error if the object does not fit its Go type or cannot be converted; returned by
// the function, it leaves the request undecided.
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

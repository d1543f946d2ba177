package admission

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// call is one request on its way through the functions.
type call struct {
	handler *handler
	request
	response
	buffers *buffers
	seen    []seen
	mu      sync.Mutex // a function may have started goroutines, which use the call concurrently
}

// buffers have the memory that a call uses, and that the next call reuses.
type buffers struct {
	codec.Arena
	before, after []byte // the JSON of an object
}

// seen is an object that a validating function has seen. Later functions of the same
// Go type and version get the same object.
type seen struct {
	form *codec.Form
	kind schema.GroupVersionKind
	old  bool
	obj  runtime.Object
}

// decide makes the patches and the decision. An error denies the request, or leaves it undecided.
func (c *call) decide(ctx context.Context) error {
	if err := c.handler.check(c.kind, c.subresource); err != nil {
		return err
	}
	if err := c.mutate(ctx, len(c.handler.validators) > 0); err != nil {
		return err
	}
	return c.validate(ctx)
}

// check returns an error for a request that no function handles, because the rules of its webhook
// do not fit the handler.
func (h *handler) check(kind schema.GroupVersionKind, subresource string) error {
	var versions []string
	known := false // the subresource
	for _, f := range h.functions {
		switch {
		case f.subresource != subresource:
		case f.matches(h, kind):
			return nil
		default:
			known = true
			if f.kind.GroupKind() == kind.GroupKind() && !slices.Contains(versions, f.kind.Version) {
				versions = append(versions, f.kind.Version)
			}
		}
	}
	of := ""
	if subresource != "" {
		if !known {
			return nil // Kubernetes may add subresources
		}
		of = " of subresource " + subresource
	}
	if len(versions) == 0 {
		return fmt.Errorf("no function is registered for kind %s%s", kind.GroupKind(), of)
	}
	return fmt.Errorf("the functions for kind %s%s are for version %s, not %s: use ConvertWith, or add functions for %s",
		kind.GroupKind(), of, strings.Join(versions, " and "), kind.Version, kind.Version)
}

// decode returns an object of the request in the form of a Go type, converted to the wanted version if
// necessary. old marks the stored object.
func (c *call) decode(ctx context.Context, arena *codec.Arena, text []byte, wanted schema.GroupVersionKind, form *codec.Form, old bool) (runtime.Object, error) {
	converted, err := c.inVersion(ctx, text, wanted, old)
	if err != nil {
		return nil, err
	}
	return callDecoder(ctx, func() (runtime.Object, error) { return form.Decode(arena, converted) })
}

// inVersion returns the JSON of an object of the request in the wanted version. If the conversion
// fails because the object does not fit the Go type of its own version, the error wraps errMisfit.
//
// An annotation of the stored object for which the converter returns a field error is left out, because the
// object could otherwise be neither repaired nor deleted.
func (c *call) inVersion(ctx context.Context, text []byte, wanted schema.GroupVersionKind, old bool) ([]byte, error) {
	converted, err := c.handler.convert(ctx, text, c.kind, wanted)
	if err == nil {
		return converted, nil
	}
	if obj, e := c.handler.scheme.New(c.kind); e == nil {
		if _, e := callDecoder(ctx, func() (runtime.Object, error) { return obj, codec.Decode(text, obj) }); e != nil {
			return nil, e
		}
	}
	for _, e := range fieldErrorsOf(err) {
		key, ok := strings.CutPrefix(e.Field, "metadata.annotations[")
		if key, closed := strings.CutSuffix(key, "]"); old && ok && closed {
			if text, err = withoutAnnotation(text, key); err != nil {
				return nil, err
			}
			return c.inVersion(ctx, text, wanted, false) // only one annotation is left out
		}
	}
	return nil, err
}

// withoutAnnotation returns a copy of an object without an annotation.
func withoutAnnotation(object []byte, key string) ([]byte, error) {
	metadata := rawjson.At(object, "metadata")
	annotations, err := rawjson.Set(rawjson.At(object, "metadata", "annotations"), key, nil)
	if err == nil {
		metadata, err = rawjson.Set(metadata, "annotations", annotations)
	}
	if err != nil {
		return nil, err
	}
	return rawjson.Set(object, "metadata", metadata)
}

// errMisfit means that an object does not fit its Go type.
var errMisfit = errors.New("the object cannot be decoded into its Go type")

// callDecoder calls a decoder, and makes its error wrap errMisfit.
func callDecoder(ctx context.Context, f func() (runtime.Object, error)) (obj runtime.Object, err error) {
	err = guard(ctx, "the decoder of the object", func() error {
		if obj, err = f(); err != nil {
			return fmt.Errorf("%w: %w", errMisfit, err)
		}
		return nil
	})
	return obj, err
}

// convert converts the JSON of an object between the versions of two kinds, if they differ.
func (h *handler) convert(ctx context.Context, text []byte, from, to schema.GroupVersionKind) ([]byte, error) {
	if from.GroupVersion() == to.GroupVersion() {
		return text, nil
	}
	err := guard(ctx, "the converter", func() (err error) {
		text, err = h.converter.Convert(ctx, text, to.GroupVersion())
		return err
	})
	return text, err
}

// callFunction calls a registered function that is given objects of that kind.
func (c *call) callFunction(ctx context.Context, kind schema.GroupVersionKind, f func(ctx context.Context) error) error {
	ctx, end := c.enter(ctx, kind)
	defer end()
	return guard(ctx, "the admission function", func() error { return f(ctx) })
}

// guard calls code of the importer: a function, the converter, an observer, or the decoder or
// encoder of a Go type. A panic is logged with its stack, and becomes an error.
func guard(ctx context.Context, what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := string(debug.Stack())
			klog.FromContext(ctx).Error(logtext.Error(fmt.Errorf("panic: %v", v)), "Admission panicked", "stack", stack)
			err = fmt.Errorf("%s panicked: %v", what, v)
		}
	}()
	return f()
}

package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// call is one request on its way through the functions.
type call struct {
	handler     *handler
	memory      *memory
	kind        schema.GroupVersionKind
	operation   admissionv1.Operation
	subresource string
	namespace   string
	name        string
	user        string

	object, oldObject []byte   // JSON in the version of the request, or nil
	patches           [][]byte // each applies to the result of the previous patch
	seen              []seen

	// A function may have started goroutines, which use the call concurrently.
	mu          sync.Mutex
	raw         []byte // the JSON of the request
	request     *admissionv1.AdmissionRequest
	warnings    []string
	annotations map[string]string
}

// memory is the memory of a call, which the next call reuses.
type memory struct {
	codec.Memory
	before, after []byte // the JSON of an object
}

// seen is an object that a validating function has seen. Later functions of the same
// representation get the same object.
type seen struct {
	representation representation
	kind           schema.GroupVersionKind
	old            bool
	obj            runtime.Object
}

func (c *call) decide(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.mutate(ctx, len(c.handler.validators) > 0); err != nil {
		return err
	}
	return c.validate(ctx)
}

// check returns an error for a request that no function handles, because the rules of its webhook
// do not fit the handler.
func (c *call) check() error {
	var versions []string
	known := false // the subresource
	for _, f := range c.handler.functions {
		switch {
		case f.subresource != c.subresource:
		case f.matches(c.handler, c.kind):
			return nil
		default:
			known = true
			if f.kind.GroupKind() == c.kind.GroupKind() && !slices.Contains(versions, f.kind.Version) {
				versions = append(versions, f.kind.Version)
			}
		}
	}
	of := ""
	if c.subresource != "" {
		if !known {
			return nil // Kubernetes may add subresources
		}
		of = " of subresource " + c.subresource
	}
	if len(versions) == 0 {
		return fmt.Errorf("no function is registered for kind %s%s", c.kind.GroupKind(), of)
	}
	return fmt.Errorf("the functions for kind %s%s are for version %s, not %s: use ConvertWith, or add functions for %s",
		c.kind.GroupKind(), of, strings.Join(versions, " and "), c.kind.Version, c.kind.Version)
}

// decode returns an object in a representation, converted to the kind's version if necessary.
// old marks the stored object.
func (c *call) decode(ctx context.Context, m *codec.Memory, text []byte, kind schema.GroupVersionKind, as representation, old bool) (runtime.Object, error) {
	inVersion := c.inVersion
	if old {
		inVersion = c.storedInVersion
	}
	converted, err := inVersion(ctx, text, kind)
	if err != nil {
		return nil, err
	}
	var obj runtime.Object
	err = guard(ctx, "the decoder of the object", func() error {
		if obj, err = as.decode(m, converted); err != nil {
			return fmt.Errorf("%w: %w", errMisfit, err)
		}
		return nil
	})
	return obj, err
}

// inVersion returns the JSON of an object of the request in the version of a kind. If the
// conversion fails because the object does not fit the Go type of its own version, the
// error wraps errMisfit.
func (c *call) inVersion(ctx context.Context, text []byte, kind schema.GroupVersionKind) ([]byte, error) {
	converted, err := c.convert(ctx, text, c.kind.GroupVersion(), kind.GroupVersion())
	if err != nil {
		return nil, cmp.Or(c.misfit(ctx, text), err)
	}
	return converted, nil
}

// storedInVersion is inVersion for the stored object. An annotation for which the converter returns
// a field error is left out, because the object could otherwise be neither repaired nor deleted.
func (c *call) storedInVersion(ctx context.Context, text []byte, kind schema.GroupVersionKind) ([]byte, error) {
	converted, err := c.inVersion(ctx, text, kind)
	for _, e := range fieldErrorsOf(err) {
		key, ok := strings.CutPrefix(e.Field, "metadata.annotations[")
		if key, closed := strings.CutSuffix(key, "]"); ok && closed {
			if text, err = withoutAnnotation(text, key); err != nil {
				return nil, err
			}
			return c.inVersion(ctx, text, kind)
		}
	}
	return converted, err
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

// misfit returns an error if the object does not fit the Go type of its own version.
func (c *call) misfit(ctx context.Context, text []byte) error {
	obj, err := c.handler.scheme.New(c.kind)
	if err != nil {
		return nil
	}
	return guard(ctx, "the decoder of the object", func() error {
		if err := codec.Decode(text, obj); err != nil {
			return fmt.Errorf("%w: %w", errMisfit, err)
		}
		return nil
	})
}

// convert converts the JSON of an object between versions, if they differ.
func (c *call) convert(ctx context.Context, text []byte, from, to schema.GroupVersion) ([]byte, error) {
	if from == to {
		return text, nil
	}
	err := guard(ctx, "the converter", func() (err error) {
		text, err = c.handler.converter.Convert(ctx, text, to)
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

// patch joins the patches, which are lists without spaces, into one. It returns nil if there
// are no patches.
func (c *call) patch() []byte {
	if len(c.patches) == 0 {
		return nil
	}
	joined := []byte{'['}
	for i, patch := range c.patches {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, patch[1:len(patch)-1]...)
	}
	return append(joined, ']')
}

package roundtrip

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/internal/conversiontrace"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// failure is how a law was broken: by an error, or by a difference, which is looked for
// when it is reported.
type failure struct {
	err   error
	diff  func() string // -want +got
	where string        // the name of what differs, if it is not the expected object
}

// along converts an object to one version after another.
func (s *subject) along(ctx context.Context, object []byte, versions ...string) ([]byte, error) {
	for _, v := range versions {
		if v == runtime.APIVersionInternal {
			ctx = conversiontrace.ThroughHub(ctx) // to the next version, which is the same one
			continue
		}
		var err error
		if object, err = s.registry.Convert(ctx, object, schema.GroupVersion{Group: s.kind.Group, Version: v}); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func roundTrip(ctx context.Context, s *subject, object []byte) *failure {
	got, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	return s.same(s.path[0], object, got)
}

// fresh is a check of objects with annotations of their past. It passes objects that also break the
// law without annotations, because another law reports them.
func fresh(check check) check {
	return func(ctx context.Context, s *subject, object []byte) *failure {
		broken := check(ctx, s, object)
		if broken == nil {
			return nil
		}
		if check(ctx, s, forget(object)) != nil {
			return nil
		}
		return broken
	}
}

func converts(ctx context.Context, s *subject, object []byte) *failure {
	if _, err := s.along(ctx, object, s.path[1]); err != nil {
		return &failure{err: err}
	}
	return nil
}

// edited differs from roundTrip in that no metadata counts but a label and an annotation that a client has added.
func edited(ctx context.Context, s *subject, object []byte) *failure {
	got, err := s.along(ctx, withAdded(object), s.path[1:]...)
	for _, name := range []string{"labels", "annotations"} {
		if err == nil && rawjson.At(got, "metadata", name, addedKey) == nil {
			err = fmt.Errorf("metadata.%s: %s, which a client has added, is lost", name, addedKey)
		}
	}
	if err != nil {
		return &failure{err: err}
	}
	return s.same(s.path[0], object, withMetadataOf(object, got))
}

// repeats is how often an object is converted, because the two members of a small map change places
// in only one of eight iterations.
const repeats = 16

// determinism converts the object in two goroutines at a time, as a webhook does, so that the race
// detector sees what functions share.
func determinism(ctx context.Context, s *subject, object []byte) *failure {
	var outs [repeats][]byte
	var errs [repeats]error
	var all sync.WaitGroup
	for half := range 2 {
		all.Go(func() {
			for i := half; i < repeats; i += 2 {
				outs[i], errs[i] = s.along(ctx, object, s.path[1:]...)
			}
		})
	}
	all.Wait()
	if errs[0] != nil {
		return nil // see RoundTrip
	}
	for i, out := range outs {
		if errs[i] != nil {
			return &failure{err: fmt.Errorf("the same object converts, and at another time does not: %w", errs[i])}
		}
		if bytes.Equal(outs[0], out) {
			continue
		}
		if f := compare(outs[0], out); f != nil {
			return f
		}
		return &failure{diff: func() string { return diffTexts(string(outs[0]), string(out)) }} // a difference in the order of members
	}
	return nil
}

// watched converts an object. It calls look before each conversion function, and the result of look
// after the function.
func (s *subject) watched(ctx context.Context, object []byte, look func(c conversiontrace.Call) func() *failure) (broken *failure) {
	ctx = conversiontrace.With(ctx, func(c conversiontrace.Call) func() {
		after := look(c)
		return func() {
			if broken == nil {
				broken = after()
			}
		}
	})
	if _, err := s.along(ctx, object, s.path[1:]...); err != nil {
		return nil // see RoundTrip
	}
	return broken
}

func inputUntouched(ctx context.Context, s *subject, object []byte) *failure {
	return s.watched(ctx, object, func(c conversiontrace.Call) func() *failure {
		before := c.In.DeepCopyObject()
		return func() *failure {
			// Not reflect.DeepEqual: a Quantity may remember its text.
			if sameValue(before, c.In, true) {
				return nil
			}
			return differ(before, c.In)
		}
	})
}

// aliasing converts an object twice, to find memory that a result shares with its input, or with the
// other result.
func aliasing(ctx context.Context, s *subject, object []byte) *failure {
	var before, made []runtime.Object
	look := func(c conversiontrace.Call) func() *failure {
		given := blocks(c.Out) // by the registry
		return func() *failure {
			if c.Shares {
				return nil
			}
			broken := func(what string, args ...any) *failure {
				what = fmt.Sprintf(what, args...)
				return &failure{err: fmt.Errorf("the function from %s to %s makes %s: copy it, or use SkipLaw if conversion-gen has generated the function", c.From.Version, c.To.Version, what)}
			}
			if in, out, found := shared(c.In, c.Out, given); found {
				return broken("an object whose %s has memory in common with %s of its input", out, in)
			}
			if n := len(made); n < len(before) {
				if _, out, found := shared(before[n], c.Out, given); found {
					return broken("objects whose %s have memory in common, such as a slice of the package", out)
				}
			}
			kept := reflect.New(reflect.TypeOf(c.Out).Elem()) // the registry uses c.Out again
			kept.Elem().Set(reflect.ValueOf(c.Out).Elem())
			made = append(made, kept.Interface().(runtime.Object))
			return nil
		}
	}
	if broken := s.watched(ctx, object, look); broken != nil {
		return broken
	}
	before, made = made, nil
	return s.watched(ctx, object, look)
}

func defaulting(ctx context.Context, s *subject, object []byte) *failure {
	a, b := s.path[0], s.path[1]
	late, err := s.along(ctx, object, b)
	if err != nil {
		return nil // see RoundTrip
	}
	if late, err = s.defaulted(b, late); err != nil {
		return &failure{err: err}
	}
	early, err := s.defaulted(a, object)
	if err == nil {
		early, err = s.along(ctx, early, b)
	}
	if err != nil {
		return &failure{err: err}
	}
	return s.compare(b, withoutLost(early), withoutLost(late))
}

// withoutLost returns an object without the annotation of Lossless, which is about the object that was
// converted, with its defaults or without them.
func withoutLost(object []byte) []byte {
	u := &unstructured.Unstructured{}
	if !bytes.Contains(object, []byte(lossless.Annotation)) || u.UnmarshalJSON(object) != nil {
		return object
	}
	all := u.GetAnnotations()
	delete(all, lossless.Annotation)
	if len(all) == 0 {
		all = nil
	}
	u.SetAnnotations(all)
	without, _ := u.MarshalJSON() // what was JSON is JSON
	return without
}

// defaulted returns an object of a version with the defaults of that version: the API
// server's, and then those of the Go type.
func (s *subject) defaulted(version string, object []byte) ([]byte, error) {
	if s.definition != nil {
		var err error
		if object, err = withDefaults(s.definition.Version(version), object); err != nil {
			return nil, err
		}
	}
	kind, known := s.kind.WithVersion(version), s.registry.Scheme()
	if !known.Recognizes(kind) {
		return object, nil
	}
	obj, err := read(known, kind, object)
	if err != nil {
		return nil, err
	}
	before := obj.DeepCopyObject()
	if known.Default(obj); sameValue(before, obj, true) {
		return object, nil
	}
	return json.Marshal(obj)
}

func pathIndependence(ctx context.Context, s *subject, object []byte) *failure {
	direct, err := s.along(ctx, object, s.path[2])
	if err != nil {
		return nil // see RoundTrip
	}
	around, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	f := s.compare(s.path[2], direct, around)
	if f == nil {
		return nil
	}
	// On the way around, the Go type of A may drop zero values, which Lossless keeps on the direct way.
	if written, err := rewrite(s.registry.Scheme(), s.kind.WithVersion(s.path[0]), object); err == nil {
		if direct, err = s.along(ctx, written, s.path[2]); err == nil && s.compare(s.path[2], direct, around) == nil {
			return nil
		}
	}
	return f
}

func acceptance(ctx context.Context, s *subject, object []byte) *failure {
	to := s.path[1]
	out, err := s.along(ctx, object, to)
	if err != nil {
		return nil // see RoundTrip
	}
	m, err := decode(out)
	if err != nil {
		return &failure{err: err}
	}
	v := s.definition.Version(to)
	var errs []error
	for _, path := range v.Prune(m) {
		errs = append(errs, fmt.Errorf("%s: the schema of %s does not have it, and pruning takes it away", path, to))
	}
	v.Default(m)
	for _, err := range v.Validate(ctx, m) {
		errs = append(errs, err)
	}
	if len(errs) == 0 && bytes.Contains(out, []byte("null")) {
		errs = refusedNulls(ctx, v, out)
	}
	if len(errs) > 0 {
		return &failure{err: errors.Join(errs...)}
	}
	return nil
}

func outside(ctx context.Context, s *subject, object []byte) *failure {
	var got []byte
	var err error
	// A panic is logged with its stack, an error is not.
	if stack := stackOf(ctx, func(ctx context.Context) { got, err = s.along(ctx, object, s.path[1:]...) }); stack != "" {
		return &failure{err: err}
	}
	if err != nil {
		return nil // the API server refuses it
	}
	return s.same(s.path[0], object, got)
}

// decoding looks at objects before anything converts them.
func decoding(_ context.Context, s *subject, object []byte) *failure {
	written, err := rewrite(s.registry.Scheme(), s.kind.WithVersion(s.path[0]), object)
	if err != nil {
		return &failure{err: fmt.Errorf("the schema of %s accepts what its Go type cannot decode: %w", s.path[0], err)}
	}
	return s.dropped(object, written)
}

package roundtrip

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/conversiontrace"
)

// throughOther is [RoundTrip] between the internal hub and a version, from either of them. convert
// converts a Go value to another version.
func throughOther(convert func(s *subject, in runtime.Object, version string) (runtime.Object, error)) checkValue {
	return func(s *subject, obj runtime.Object) *failure {
		got := obj
		for _, version := range s.path[1:] {
			var err error
			if got, err = convert(s, got, version); err != nil {
				return &failure{err: err}
			}
		}
		if s.path[0] != runtime.APIVersionInternal && !sameValue(obj, got, true) {
			if f := s.compare(s.path[0], sample{value: obj}.text(), sample{value: got}.text()); f != nil {
				return f
			}
		}
		return s.sameNormalized(obj, got) // differences that JSON does not show
	}
}

// sameNormalized returns how a Go value differs from what it was, or nil. An object of the internal
// hub is never encoded, so its JSON does not count, and neither does its apiVersion.
func (s *subject) sameNormalized(want, got runtime.Object) *failure {
	version := s.path[0]
	want, got = want.DeepCopyObject(), got.DeepCopyObject()
	for _, obj := range []runtime.Object{want, got} {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		for _, n := range s.normalizers(version) {
			n.normalize(obj)
		}
	}
	if sameValue(want, got, false) {
		return nil
	}
	return differ(want, got)
}

// hubFunctions are the two functions between a version and the internal hub of its kind, because no
// API of the registry takes an object of that hub.
type hubFunctions struct {
	to, from func(ctx context.Context, in, out runtime.Object) error
}

// findHubFunctions watches a conversion through the hub. It returns false if none of a few
// objects converts, which other laws report, or if more happens than one call of each:
// [conversion.Lossless] keeps outside of the functions what they lose.
func findHubFunctions(reg *conversion.Registry, cfg *config, kind conversion.Kind, version string) (f hubFunctions, ok bool) {
	s := &subject{registry: reg, cfg: cfg, kind: kind, path: []string{version}, definition: cfg.definition(kind.GroupKind)}
	for i := range 20 {
		m, err := s.sample(silent(context.Background()), choices.New(cfg.seed, "functions", i))
		if err != nil {
			continue
		}
		calls := 0
		ctx := conversiontrace.With(silent(context.Background()), func(c conversiontrace.Call) func() {
			if calls++; c.To.Version == runtime.APIVersionInternal {
				f.to = c.Func
			} else {
				f.from = c.Func
			}
			return func() {}
		})
		if _, err := s.along(ctx, m.json, kind.Hub, version); err == nil {
			return f, calls == 2 && f.to != nil && f.from != nil
		}
	}
	return f, false
}

// convert does what the registry does: the result has the metadata from the start, and a
// version is stored as JSON.
func (f hubFunctions) convert(s *subject, in runtime.Object, version string) (runtime.Object, error) {
	kind := s.kind.WithVersion(version)
	out, err := s.registry.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	metaOf := func(obj runtime.Object) *metav1.ObjectMeta {
		return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) // the registry requires metadata
	}
	metaOf(in).DeepCopyInto(metaOf(out))
	call := f.from
	if version == runtime.APIVersionInternal {
		call = f.to
	}
	if err := call(silent(context.Background()), in, out); err != nil {
		return nil, fmt.Errorf("to %s: %w", version, err)
	}
	out.GetObjectKind().SetGroupVersionKind(kind)
	if version == runtime.APIVersionInternal {
		return out, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return read(s.registry.Scheme(), kind, text)
}

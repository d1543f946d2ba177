package roundtrip

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/conversion"
)

var schemeLaws = []Law{JSON, YAML, CBOR, Protobuf, DeepCopy, Idempotence}

// TestScheme checks the Go types of a scheme, even if no registry converts them, in a subtest for
// each kind, version and law, such as Pizza/v1alpha1/json. The laws are [JSON], [YAML], [CBOR],
// [Protobuf], [DeepCopy] and [Idempotence].
//
// If the scheme has the internal version of a kind, TestScheme also checks [DeepCopy] of the
// internal version, and [RoundTrip] with the scheme's conversion functions. The paths lead from
// each version to the internal version and back (Pizza/v1→__internal→v1/round-trip), and from
// the internal version to each version and back. TestScheme covers the checks of
// RoundTripExternalTypes in k8s.io/apimachinery/pkg/api/apitesting/roundtrip.
//
// Lists are checked like other kinds. The types of k8s.io/apimachinery that each scheme has, such
// as ListOptions and WatchEvent, are not checked.
//
// Objects are generated, and failures reported, as by [Test] without a CRD. In objects within
// objects, apiVersion and kind are empty, as Protobuf and internal versions require.
//
// [Normalize] only affects RoundTrip. The test fails at once if it has the options [CRD],
// [History] or [Refuse], or if the scheme has no kinds.
func TestScheme(t *testing.T, s *runtime.Scheme, opts ...Option) {
	t.Helper()
	kinds := kindsOf(s)
	if len(kinds) == 0 {
		t.Fatal("roundtrip.TestScheme: the scheme has no kinds")
	}
	cfg, err := newConfigForScheme(s, opts)
	if err != nil {
		t.Fatal(err)
	}
	cfg.printSeed(t.Name())
	reg := conversion.NewRegistry(s) // without conversions
	for _, kind := range kinds {
		t.Run(kind.Kind, func(t *testing.T) { testAll(t, cfg, schemeSubjects(reg, cfg, kind)) })
	}
}

// newConfigForScheme is newConfig for the types of a scheme.
func newConfigForScheme(s *runtime.Scheme, opts []Option) (*config, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(c.definitions)+len(c.history)+len(c.refusals) > 0 {
		return nil, errors.New("roundtrip.TestScheme: it checks Go types, and roundtrip.CRD, History and Refuse mean nothing to it")
	}
	blank := []any{func(*metav1.TypeMeta, randfill.Continue) {}, func(*runtime.TypeMeta, randfill.Continue) {}}
	c.funcs = append(blank, c.funcs...)
	return c, errors.Join(c.checkFuncs(s, kindsOf(s)), c.checkNormalizers(s, kindsOf(s)))
}

// kindsOf returns the kinds of a scheme, as [conversion.Registry.Kinds] does.
func kindsOf(s *runtime.Scheme) []conversion.Kind {
	kinds := map[schema.GroupKind]*conversion.Kind{}
	for name, t := range s.AllKnownTypes() {
		if strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/pkg/apis/meta/") {
			continue
		}
		k := kinds[name.GroupKind()]
		if k == nil {
			k = &conversion.Kind{GroupKind: name.GroupKind()}
			kinds[name.GroupKind()] = k
		}
		if name.Version == runtime.APIVersionInternal {
			k.Hub = name.Version
		} else {
			k.Versions = append(k.Versions, name.Version)
		}
	}
	var all []conversion.Kind
	for _, gk := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	}) {
		slices.SortFunc(kinds[gk].Versions, kubeversion.CompareKubeAwareVersionStrings)
		all = append(all, *kinds[gk])
	}
	return all
}

// schemeSubjects returns the subjects of a kind, those of one path together.
func schemeSubjects(reg *conversion.Registry, cfg *config, kind conversion.Kind) (all []*subject) {
	add := func(law Law, check checkValue, path ...string) {
		all = append(all, &subject{registry: reg, cfg: cfg, kind: kind, path: path, law: law, checkValue: check})
	}
	for _, v := range kind.Versions {
		for _, e := range encodings(reg.Scheme(), kind.WithVersion(v)) {
			add(e.law, e.check, v)
		}
		add(DeepCopy, deepCopy, v)
		add(Idempotence, idempotence, v)
	}
	if kind.Hub == "" {
		return all
	}
	add(DeepCopy, deepCopy, kind.Hub)
	through := throughOther(func(s *subject, in runtime.Object, version string) (runtime.Object, error) {
		return s.registry.Scheme().ConvertToVersion(in, schema.GroupVersion{Group: s.kind.Group, Version: version})
	})
	for _, v := range kind.Versions {
		add(RoundTrip, through, v, kind.Hub, v)
		add(RoundTrip, through, kind.Hub, v, kind.Hub)
	}
	return all
}

// checkValue returns how a Go value breaks a law, or nil.
type checkValue func(s *subject, obj runtime.Object) *failure

// encoding is an encoding of one kind.
type encoding struct {
	law   Law
	plain runtime.Serializer
	// strict decodes alone.
	strict runtime.Decoder
}

func encodings(s *runtime.Scheme, kind schema.GroupVersionKind) []*encoding {
	byJSON := func(o json.SerializerOptions) runtime.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, o)
	}
	all := []*encoding{
		{law: JSON, plain: byJSON(json.SerializerOptions{}), strict: byJSON(json.SerializerOptions{Strict: true})},
		{law: YAML, plain: byJSON(json.SerializerOptions{Yaml: true}), strict: byJSON(json.SerializerOptions{Yaml: true, Strict: true})},
		{law: CBOR, plain: cbor.NewSerializer(s, s), strict: cbor.NewSerializer(s, s, cbor.Strict(true))},
	}
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal([]byte) error
		Reset()
	}
	if obj, err := s.New(kind); err == nil {
		if _, ok := obj.(message); ok {
			p := protobuf.NewSerializer(s, s) // which skips unknown fields
			all = append(all, &encoding{law: Protobuf, plain: p, strict: p})
		}
	}
	return all
}

func (e *encoding) check(s *subject, obj runtime.Object) *failure {
	before := obj.DeepCopyObject()
	first, err := runtime.Encode(e.plain, obj)
	if err != nil {
		return &failure{err: fmt.Errorf("cannot encode it: %w", err)}
	}
	// A wrong DeepCopyObject is not the encoding's fault.
	if !sameValue(before, obj, true) && sameValue(obj, obj.DeepCopyObject(), true) {
		return &failure{err: fmt.Errorf("to encode an object changes it (-before +after):\n%s", differ(before, obj).diff())}
	}

	decoded, _, err := e.plain.Decode(first, nil, nil)
	if err != nil {
		return &failure{err: fmt.Errorf("cannot decode %s: %w", e.readable(first), err)}
	}
	if !sameValue(obj, decoded, false) {
		return differ(obj, decoded)
	}
	// Encoding the decoded value, and not the object again, also shows whether the encoding is
	// stable. If it differs, one of both is wrong.
	second, err := runtime.Encode(e.plain, decoded)
	if err != nil {
		return &failure{err: fmt.Errorf("cannot encode what was decoded: %w", err)}
	}
	if !e.same(first, second) {
		if f := e.stable(obj, first); f != nil || e.law == Protobuf {
			return f
		}
		if !sameValue(obj, decoded, true) {
			return differ(obj, decoded)
		}
		return &failure{diff: func() string { return diffTexts(e.readable(first), e.readable(second)) }}
	}

	into, err := s.registry.Scheme().New(s.kind.WithVersion(s.path[0]))
	if err != nil {
		return &failure{err: err}
	}
	switch out, _, err := e.strict.Decode(first, nil, into); {
	case err != nil:
		return &failure{err: fmt.Errorf("cannot decode %s strictly: %w", e.readable(first), err)}
	case out != into:
		return &failure{err: fmt.Errorf("decodes into a %T, want a %T", out, into)}
	case !sameValue(decoded, into, true):
		return &failure{err: fmt.Errorf("to decode it into an object gives another one (-new +into):\n%s", differ(decoded, into).diff())}
	}
	return nil
}

// stable looks whether an object has one encoding.
func (e *encoding) stable(obj runtime.Object, first []byte) *failure {
	for range 4 * repeats {
		again, err := runtime.Encode(e.plain, obj)
		if err != nil {
			return &failure{err: fmt.Errorf("cannot encode it again: %w", err)}
		}
		if !e.same(first, again) {
			return &failure{err: fmt.Errorf("an object has two encodings (-first +again):\n%s", diffTexts(e.readable(first), e.readable(again)))}
		}
	}
	return nil
}

// same reports whether two encodings are equal, except that those in YAML may differ in the order
// of members, because go.yaml.in/yaml has no order for keys such as 08, 1 and 0x1F.
func (e *encoding) same(a, b []byte) bool {
	if bytes.Equal(a, b) || e.law != YAML {
		return bytes.Equal(a, b)
	}
	x, errX := yaml.YAMLToJSON(a)
	y, errY := yaml.YAMLToJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// readable returns an encoding as a report shows it.
func (e *encoding) readable(data []byte) string {
	if e.law == JSON || e.law == YAML {
		return strings.TrimSpace(string(data))
	}
	return fmt.Sprintf("%q", data)
}

func deepCopy(_ *subject, obj runtime.Object) *failure {
	out := obj.DeepCopyObject()
	if !sameValue(obj, out, true) {
		return differ(obj, out)
	}
	if in, _, found := shared(obj, out, nil); found {
		return &failure{err: fmt.Errorf("the copy shares the memory of %s with the original", in)}
	}
	return nil
}

func idempotence(s *subject, obj runtime.Object) *failure {
	once := obj.DeepCopyObject()
	s.registry.Scheme().Default(once)
	twice := once.DeepCopyObject()
	if s.registry.Scheme().Default(twice); sameValue(once, twice, true) {
		return nil
	}
	return differ(once, twice)
}

package roundtrip

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// ownedBox is the internal version of a Box, and alone has owners.
type (
	ownedBox struct {
		metav1.TypeMeta
		metav1.ObjectMeta
		Spec   boxSpec
		Owners map[string]*owner
	}
	owner struct{ Name, Since string }
)

func (b *ownedBox) DeepCopyObject() runtime.Object {
	out := &ownedBox{b.TypeMeta, *b.ObjectMeta.DeepCopy(), *b.Spec.copy(), maps.Clone(b.Owners)}
	for k, v := range out.Owners {
		if v != nil {
			out.Owners[k] = new(*v)
		}
	}
	return out
}

var internalBoxKind = schema.GroupVersionKind{Group: boxVersion.Group, Version: runtime.APIVersionInternal, Kind: "Box"}

func ownedBoxes(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := boxes(&Box{})
	s.AddKnownTypeWithName(internalBoxKind, &ownedBox{})
	err := s.AddConversionFunc((*Box)(nil), (*ownedBox)(nil), func(in, out any, _ apiconversion.Scope) error {
		b := in.(*Box).copy()
		out.(*ownedBox).ObjectMeta, out.(*ownedBox).Spec = b.ObjectMeta, b.Spec
		return nil
	})
	if err == nil {
		err = s.AddConversionFunc((*ownedBox)(nil), (*Box)(nil), func(in, out any, _ apiconversion.Scope) error {
			b := in.(*ownedBox).DeepCopyObject().(*ownedBox)
			out.(*Box).ObjectMeta, out.(*Box).Spec = b.ObjectMeta, b.Spec
			return nil
		})
	}
	expect.NoError(t, err)
	return s
}

// boxRegistry has the conversions of a scheme's boxes.
func boxRegistry(t *testing.T, s *runtime.Scheme) *conversion.Registry {
	t.Helper()
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSchemeFunctions(reg, internalBoxKind))
	return reg
}

func TestRoundTrip_InternalHubLosesAField(t *testing.T) {
	for seed := range seeds() {
		found := findInScheme(t, ownedBoxes(t), seed, RoundTrip)[RoundTrip]
		if found == nil {
			t.Fatalf("seed %d: TestScheme does not find it", seed)
		}
		reg := boxRegistry(t, ownedBoxes(t))
		cfg, err := newConfigFor(reg, []Option{Funcs(boxFuncs...), Seed(seed)})
		expect.NoError(t, err)
		all := map[string]*counterexample{"TestScheme": found}
		for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
			c, err := s.search(t.Context(), cfg.budget(20))
			expect.NoError(t, err)
			if c != nil {
				all["Test"] = c
			}
		}
		if all["Test"] == nil {
			t.Fatalf("seed %d: Test does not find it", seed)
		}
		for name, c := range all {
			if got := c.subject.route(); got != "__internal→v1→__internal" {
				t.Errorf("seed %d: %s finds it on the path %s", seed, name, got)
			}
			if report := c.report(); !strings.Contains(report, `- Owners[""]: `) || strings.Count(c.yaml(), "\n") > 16 {
				t.Errorf("seed %d: %s:\n%s", seed, name, report)
			}
		}
	}
}

func TestNormalize_InternalHub(t *testing.T) {
	s := ownedBoxes(t)
	declared := Normalize("nobody owns boxes", func(b *ownedBox) { b.Owners = nil })
	TestScheme(t, s, Funcs(boxFuncs...), declared, Iterations(50))
	Test(t, boxRegistry(t, s), Funcs(boxFuncs...), declared, Iterations(50))
}

// Code that keeps a field in an annotation beside the functions is not tested without it.
func TestRoundTrip_InternalHubLossless(t *testing.T) {
	reg := boxRegistry(t, ownedBoxes(t))
	expect.NoError(t, conversion.Lossless(reg, boxVersion.WithKind("Box")))
	cfg, err := newConfigFor(reg, []Option{Funcs(boxFuncs...)})
	expect.NoError(t, err)
	if slices.ContainsFunc(subjects(reg, cfg, reg.Kinds()[0]), func(s *subject) bool { return s.checkValue != nil }) {
		t.Error("the functions of a lossless version are checked without what they lose")
	}
}

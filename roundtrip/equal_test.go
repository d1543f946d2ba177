package roundtrip

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/test/expect"
)

var jobKind = schema.GroupVersionKind{Group: jobGroup, Version: "v1", Kind: "Job"}

// bugNamed returns a bug of the catalogue.
func bugNamed(t testing.TB, name string) bug {
	t.Helper()
	i := slices.IndexFunc(bugs, func(b bug) bool { return b.name == name })
	if i < 0 {
		t.Fatalf("the catalogue has no bug %q", name)
	}
	return bugs[i]
}

func TestNormalize_HidesNothingElse(t *testing.T) {
	find := func(opts ...Option) map[Law]*counterexample {
		reg := bugNamed(t, "dropped field").jobs(t)
		cfg, err := newConfigFor(reg, append(opts, Funcs(jobFuncs...), Seed(1), Iterations(50)))
		expect.NoError(t, err)
		found := map[Law]*counterexample{}
		for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
			c, err := s.search(t.Context(), cfg.budget(20))
			expect.NoError(t, err)
			if c != nil {
				found[s.law] = c
			}
		}
		return found
	}
	clearIn := func(field func(c *Common)) Option {
		return Normalize("it is going away", func(j *hubJob) {
			if j.Spec != nil {
				field(&j.Spec.Common)
			}
		})
	}
	other := Normalize("it is of another version", func(j *alphaJob) { j.Spec = nil })
	for _, c := range find(clearIn(func(c *Common) { c.Note = "" }), other) {
		t.Error(c.report())
	}
	if len(find(clearIn(func(c *Common) { c.Tags = nil }), other)) == 0 {
		t.Error("the normalizers of another field and of another version hide that spec.note is lost")
	}
}

// Objects are compared after Normalize.
func TestNormalize_BeforeComparison(t *testing.T) {
	merged := bugNamed(t, "merged equal elements")
	normal := func(s *spokeSpec, h *hubSpec) {
		for _, c := range []*Common{&h.Common, &s.Common} {
			slices.Sort(c.Tags)
			c.Tags = slices.Compact(c.Tags)
		}
	}
	opts := []Option{
		Normalize("tags are a set", func(j *hubJob) {
			if j.Spec != nil {
				normal(&spokeSpec{}, j.Spec)
			}
		}),
		Normalize("tags are a set", func(j *alphaJob) {
			if j.Spec != nil {
				normal(j.Spec, &hubSpec{})
			}
		}),
		Funcs(jobFuncs...), Iterations(50),
	}
	Test(t, merged.jobs(t), opts...)
}

// Normalize of unstructured objects is for versions without a Go type.
func TestNormalize_Unstructured(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(jobKind, &hubJob{})
	reg := untyped(t, s)
	cfg, err := newConfigFor(reg, []Option{Normalize("anything goes", func(u *unstructured.Unstructured) { u.Object = map[string]any{} })})
	expect.NoError(t, err)
	subject := &subject{registry: reg, cfg: cfg, kind: reg.Kinds()[0]}
	object := func(version, name string) []byte {
		return []byte(`{"apiVersion":"` + jobGroup + `/` + version + `","kind":"Job","metadata":{"name":"` + name + `"}}`)
	}
	for version, same := range map[string]bool{"v1alpha1": true, "v1": false} {
		if f := subject.compare(version, object(version, "a"), object(version, "b")); (f == nil) != same {
			t.Errorf("%s: got %v", version, f)
		}
	}
}

// Declarations that make no sense are errors.
func TestOptions_MakeNoSense(t *testing.T) {
	reg := bug{}.jobs(t)
	for _, c := range []struct {
		option Option
		want   string
	}{
		{Normalize("", func(*hubJob) {}), "needs a reason"},
		{Normalize[*hubJob]("why", nil), "needs a reason and a function"},
		{Normalize("why", func(*betaJob) {}), "roundtrip.Normalize"},
		{CheckLaw(RoundTrip), "not checked on request"},
		{CheckLaw(OutsideSchema), "see roundtrip.CRD"},
		{CRD([]byte("kind: Job")), "roundtrip.CRD"},
		{CRD([]byte("# nothing\n---\n")), "roundtrip.CRD: the text has no CustomResourceDefinition"},
		{CRD([]byte(thingDefinition(byNone, "v1", anyNumber, anyNumber))), "the first is of Thing.example.com"},
	} {
		_, err := newConfigFor(reg, []Option{c.option})
		expect.ErrorContains(t, err, c.want)
	}
}

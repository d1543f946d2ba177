package roundtrip

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func TestADeclaredLossIsNoFailureAndNothingElseIsHiddenByIt(t *testing.T) {
	find := func(opts ...Option) map[Law]*counterexample {
		reg := bugNamed(t, "a field is dropped in one direction").jobs(t)
		cfg, err := newConfigFor(reg, append(opts, Funcs(jobFuncs...), Seed(1), Iterations(50)))
		if err != nil {
			t.Fatal(err)
		}
		found := map[Law]*counterexample{}
		for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
			c, err := s.search(t.Context(), cfg.budget(20))
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				found[s.law] = c
			}
		}
		return found
	}
	v1alpha1 := schema.GroupVersionKind{Group: jobGroup, Version: "v1alpha1", Kind: "Job"}
	declared := find(Loss(jobKind, "spec.note", "notes are going away"), Loss(v1alpha1, "spec.note", "the same"))
	for _, c := range declared {
		t.Error(c.report())
	}
	if len(find(Loss(jobKind, "spec.tags[*]", "of another field"), Loss(v1alpha1, "spec.note", "of another version"))) == 0 {
		t.Error("the loss of another field hides that of spec.note")
	}
}

func TestObjectsAreComparedAfterNormalize(t *testing.T) {
	merged := bugNamed(t, "equal elements are merged")
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

func TestNormalizeOfUnstructuredIsForVersionsWithoutAGoType(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(jobKind, &hubJob{})
	reg := untyped(t, s)
	cfg, err := newConfigFor(reg, []Option{Normalize("anything goes", func(u *unstructured.Unstructured) { u.Object = map[string]any{} })})
	if err != nil {
		t.Fatal(err)
	}
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

func TestDeclarationsThatMakeNoSenseAreErrors(t *testing.T) {
	reg := bug{}.jobs(t)
	for _, c := range []struct {
		option Option
		want   string
	}{
		{Loss(jobKind, "", "why"), "the path is empty"},
		{Loss(jobKind, "spec..note", "why"), "a name is empty"},
		{Loss(jobKind, "spec[*]note", "why"), "no dot before note"},
		{Loss(jobKind, `spec["note`, "why"), "there is no end"},
		{Loss(jobKind, "spec.note", ""), "needs a reason"},
		{Loss(schema.GroupVersionKind{Group: jobGroup, Version: "v3", Kind: "Job"}, "spec.note", "why"), "does not convert"},
		{Normalize("", func(*hubJob) {}), "needs a reason"},
		{Normalize[*hubJob]("why", nil), "needs a reason and a function"},
		{Normalize("why", func(*betaJob) {}), "roundtrip.Normalize"},
		{With(RoundTrip), "not checked on request"},
		{With(OutsideSchema), "see roundtrip.CRD"},
		{Time(0), "nothing can be checked in 0s"},
		{CRD([]byte("kind: Job")), "roundtrip.CRD"},
	} {
		if _, err := newConfigFor(reg, []Option{c.option}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestAPathLeadsToWhatItNames(t *testing.T) {
	const object = `{"a":{"b":[{"c":1,"d":2},{"c":3}],"x.y":4,"z":5}}`
	for path, want := range map[string]string{
		"a":             `{}`,
		"a.z":           `{"a":{"b":[{"c":1,"d":2},{"c":3}],"x.y":4}}`,
		`a["x.y"]`:      `{"a":{"b":[{"c":1,"d":2},{"c":3}],"z":5}}`,
		"a.b[*].c":      `{"a":{"b":[{"d":2},{}],"x.y":4,"z":5}}`,
		"a.b[*]":        `{"a":{"b":[null,null],"x.y":4,"z":5}}`,
		"a[*]":          `{"a":{}}`,
		"a.b.c":         object,
		"nothing.there": object,
	} {
		steps, err := parsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		v, err := value([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		remove(v, steps)
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

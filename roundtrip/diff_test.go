package roundtrip

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
)

func TestDiff_NamesWhatDiffers(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ want, got, diff string }{
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`, ``},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, "- a.c: 2\n+ a.c: 3"},
		{`{"a":null,"b":[],"c":{}}`, `{"a":[],"b":{}}`, "- a: null\n+ a: []\n- b: []\n+ b: {}\n- c: {}"},
		{`{"x":{"example.com/y":"<"}}`, `{"x":{}}`, `- x["example.com/y"]: "<"`},
		{`{"a":[1,2,3]}`, `{"a":[1,3]}`, "- a[1]: 2\n+ a[1]: 3\n- a[2]: 3"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, "- a[0]: 1\n+ a[0]: 2\n- a[1]: 2\n+ a[1]: 1"},
		{`{"a":[1]}`, `{"a":[2,{"b":3}]}`, "- a[0]: 1\n+ a[0]: 2\n+ a[1]: {\"b\":3}"},
		{`[]`, `1`, "- []\n+ 1"},
		{`"` + long + `a"`, `"` + long + `b"`, `- …` + strings.Repeat("x", 198) + "a\"\n+ …" + strings.Repeat("x", 198) + `b"`},
	} {
		got := ""
		if f := compare([]byte(c.want), []byte(c.got)); f != nil {
			got = f.diff()
		}
		if diff := cmp.Diff(c.diff, got); diff != "" {
			t.Errorf("%.40s and %.40s (-want +got):\n%s", c.want, c.got, diff)
		}
	}
}

func TestDiff_IsBounded(t *testing.T) {
	var want, got []any
	for i := range 1000 {
		want, got = append(want, strings.Repeat("x", 1000)), append(got, fmt.Sprint(i, strings.Repeat("y", 1000)))
	}
	diff := diffValues(want, got, true)
	if lines := strings.Split(diff, "\n"); len(lines) != diffLines+1 || lines[diffLines] != "and more" || len(diff) > 2*diffLines*diffText {
		t.Errorf("%d lines, %d bytes:\n%s", len(lines), len(diff), diff)
	}
}

// To compare such values level by level, and each level twice, takes longer than anybody
// waits.
func TestCompare_DeepLists(t *testing.T) {
	deep := func(name string) []byte {
		return []byte(strings.Repeat(`{"steps":[`, 100) + name + strings.Repeat(`]}`, 100))
	}
	if f := compare(deep(`"a"`), deep(`"a"`)); f != nil {
		t.Error(f.diff())
	}
	f := compare(deep(`"a"`), deep(`"b"`))
	if f == nil || !strings.HasSuffix(f.diff(), `.steps[0]: "b"`) {
		t.Errorf("got %v", f)
	}
	nested := func(depth int) *plan {
		p := &plan{}
		for range depth {
			p.Steps = []step{{Steps: p.Steps}}
		}
		return p
	}
	if f := differ(nested(100), nested(101), true); !strings.HasSuffix(f.diff(), `.steps[0].steps: [{}]`) {
		t.Error(f.diff())
	}
	// JSON does not show this one.
	odd, even := nested(100), nested(100)
	for s := &even.Steps; ; s = &(*s)[0].Steps {
		if *s == nil {
			*s = []step{}
			break
		}
	}
	if f := differ(odd, even, true); !strings.Contains(f.diff(), ".steps[0].steps: null\n") {
		t.Error(f.diff())
	}
}

// plan has a list of itself.
type (
	plan struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Steps             []step `json:"steps,omitempty"`
	}
	planV1 plan
	step   struct {
		Name  string `json:"name,omitempty"`
		Steps []step `json:"steps,omitempty"`
	}
)

func copySteps(in []step) []step {
	out := slices.Clone(in)
	for i := range out {
		out[i].Steps = copySteps(out[i].Steps)
	}
	return out
}

func (p *plan) DeepCopyObject() runtime.Object {
	return &plan{p.TypeMeta, *p.ObjectMeta.DeepCopy(), copySteps(p.Steps)}
}
func (p *planV1) DeepCopyObject() runtime.Object {
	return (*planV1)((*plan)(p).DeepCopyObject().(*plan))
}

func plans(t *testing.T, change func(s []step)) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: jobGroup, Version: "v1beta1", Kind: "Plan"}, &plan{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: jobGroup, Version: "v1", Kind: "Plan"}, &planV1{})
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg, func(_ context.Context, in *plan, out *planV1) error {
		out.Steps = copySteps(in.Steps)
		change(out.Steps)
		return nil
	}, func(_ context.Context, in *planV1, out *plan) error {
		out.Steps = copySteps(in.Steps)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestTest_RecursiveListsEnd(t *testing.T) {
	reg := plans(t, func([]step) {})
	Test(t, reg, Iterations(30))
	TestScheme(t, reg.Scheme(), Iterations(30))
}

func TestTest_RecursiveListsShrink(t *testing.T) {
	var drop func(all []step, depth int)
	drop = func(all []step, depth int) {
		for i := range all {
			if depth > 3 {
				all[i].Name = ""
			}
			drop(all[i].Steps, depth+1)
		}
	}
	reg := plans(t, func(s []step) { drop(s, 1) })
	cfg, err := newConfigFor(reg, []Option{Seed(1)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := subjects(reg, cfg, reg.Kinds()[0])[0].search(t.Context(), cfg.budget(10))
	if err != nil || c == nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if n := strings.Count(c.yaml(), "\n"); n > 12 {
		t.Errorf("%d lines:\n%s", n, c.report())
	}
}

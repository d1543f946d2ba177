package roundtrip

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
)

// Job is the test kind. Its versions differ in how they hold the limits: those that are
// not the hub have a map.
type (
	alphaJob struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              *spokeSpec `json:"spec,omitempty"`
	}
	betaJob alphaJob
	hubJob  struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              *hubSpec `json:"spec,omitempty"`
	}
	spokeSpec struct {
		Common `json:",inline"`
		Limits map[string]string `json:"limits,omitzero"`
	}
	hubSpec struct {
		Common `json:",inline"`
		Limits []limit `json:"limits,omitzero"`
	}
	// Common has an exported name because randfill fills exported fields alone.
	Common struct {
		Note     string             `json:"note,omitempty"`
		Tags     []string           `json:"tags,omitzero"`
		Replicas *int32             `json:"replicas,omitempty"`
		Serial   int64              `json:"serial,omitempty"`
		Mode     mode               `json:"mode,omitempty"`
		Memory   amount             `json:"memory,omitempty"`
		Since    *metav1.MicroTime  `json:"since,omitempty"`
		Template *metav1.ObjectMeta `json:"template,omitempty"`
	}
	limit struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	mode   string
	amount string
)

func (c *Common) copy() Common {
	out := *c
	out.Tags = slices.Clone(c.Tags)
	if c.Replicas != nil {
		out.Replicas = new(*c.Replicas)
	}
	out.Since, out.Template = c.Since.DeepCopy(), c.Template.DeepCopy()
	return out
}

func (j *alphaJob) DeepCopyObject() runtime.Object {
	out := &alphaJob{j.TypeMeta, *j.ObjectMeta.DeepCopy(), nil}
	if j.Spec != nil {
		out.Spec = &spokeSpec{j.Spec.copy(), maps.Clone(j.Spec.Limits)}
	}
	return out
}

func (j *betaJob) DeepCopyObject() runtime.Object {
	return (*betaJob)((*alphaJob)(j).DeepCopyObject().(*alphaJob))
}

func (j *hubJob) DeepCopyObject() runtime.Object {
	out := &hubJob{j.TypeMeta, *j.ObjectMeta.DeepCopy(), nil}
	if j.Spec != nil {
		out.Spec = &hubSpec{j.Spec.copy(), slices.Clone(j.Spec.Limits)}
	}
	return out
}

// jobFuncs make valid jobs: the list of limits is sorted and has each name once.
var jobFuncs = []any{
	func(m *mode, c randfill.Continue) { *m = []mode{"", "slow", "fast", "turbo"}[c.Intn(4)] },
	func(a *amount, c randfill.Continue) {
		*a = amount(fmt.Sprint(c.Intn(4096), []string{"", "Mi", "m"}[c.Intn(3)]))
	},
	func(l *[]limit, c randfill.Continue) {
		var m map[string]string
		c.Fill(&m)
		*l = sorted(m)
	},
}

func sorted(m map[string]string) []limit {
	list := unsorted(m)
	slices.SortFunc(list, func(a, b limit) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func unsorted(m map[string]string) []limit {
	if m == nil {
		return nil
	}
	list := []limit{}
	for name, value := range m {
		list = append(list, limit{name, value})
	}
	return list
}

func toHub(in *alphaJob, out *hubJob) {
	if in.Spec != nil {
		out.Spec = &hubSpec{in.Spec.copy(), sorted(in.Spec.Limits)}
	}
}

func fromHub(in *hubJob, out *alphaJob) {
	if in.Spec == nil {
		return
	}
	out.Spec = &spokeSpec{Common: in.Spec.copy()}
	if in.Spec.Limits != nil {
		out.Spec.Limits = map[string]string{}
	}
	for _, l := range in.Spec.Limits {
		out.Spec.Limits[l.Name] = l.Value
	}
}

// bug is what may be wrong with the conversions of a job; each part is done after the
// right thing has been.
type bug struct {
	name    string
	law     Law // that finds it, and maybe not alone
	toHub   func(in *alphaJob, out *hubJob)
	fromHub func(in *hubJob, out *alphaJob)
	direct  func(in, out *Common) // between the versions that are not the hub, there and back
	back    func(in, out *Common)
}

// inSpec is for bugs in what the versions have in common.
func inSpec(f func(in, out *Common)) func(*alphaJob, *hubJob) {
	return func(in *alphaJob, out *hubJob) {
		if in.Spec != nil {
			f(&in.Spec.Common, &out.Spec.Common)
		}
	}
}

func inSpecBack(f func(in, out *Common)) func(*hubJob, *alphaJob) {
	return func(in *hubJob, out *alphaJob) {
		if in.Spec != nil {
			f(&in.Spec.Common, &out.Spec.Common)
		}
	}
}

var bugs = []bug{
	{name: "a field is dropped in one direction", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) { out.Note = "" })},
	{name: "nil becomes empty", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Tags = append([]string{}, in.Tags...) })},
	{name: "empty becomes nil", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) { out.Tags = append([]string(nil), in.Tags...) })},
	{name: "a pointer to zero is lost", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Replicas != nil && *out.Replicas == 0 {
			out.Replicas = nil
		}
	})},
	{name: "an int64 goes through a float64", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Serial = int64(float64(in.Serial)) })},
	{name: "an int64 is cut to 32 bits", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) { out.Serial = int64(int32(in.Serial)) })},
	{name: "the order of a map leaks into a list", law: Determinism, toHub: func(in *alphaJob, out *hubJob) {
		if in.Spec != nil {
			out.Spec.Limits = unsorted(in.Spec.Limits)
		}
	}},
	{name: "a default is applied in one direction", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Mode = cmp.Or(in.Mode, "slow") })},
	{name: "a value is unknown to the old version", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) {
		if out.Mode == "turbo" {
			out.Mode = "fast"
		}
	})},
	{name: "the UID is changed", law: Metadata, toHub: func(_ *alphaJob, out *hubJob) { out.UID = "new" }},
	{name: "the labels are replaced", law: RoundTrip, toHub: func(_ *alphaJob, out *hubJob) { out.Labels = map[string]string{"converted": "yes"} }},
	{name: "a timestamp is truncated", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Since != nil {
			out.Since.Time = out.Since.Truncate(time.Second)
		}
	})},
	{name: "a list of the input is sorted", law: InputUntouched, toHub: inSpec(func(in, _ *Common) { slices.Sort(in.Tags) })},
	{name: "the name of the input is changed", law: InputUntouched, fromHub: func(in *hubJob, _ *alphaJob) { in.Name += "-seen" }},
	{name: "a panic without spec", law: Partial, toHub: func(in *alphaJob, out *hubJob) { out.Spec.Note = in.Spec.Note }},
	{name: "a quantity is normalised", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) {
		if in.Memory != "" {
			q := resource.MustParse(string(in.Memory))
			out.Memory = amount(q.String())
		}
	})},
	{name: "embedded metadata is dropped", law: RoundTrip, toHub: inSpec(func(in, out *Common) {
		if in.Template != nil {
			out.Template = &metav1.ObjectMeta{Name: in.Template.Name, Labels: in.Template.Labels}
		}
	})},
	{name: "equal elements are merged", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		slices.Sort(out.Tags)
		out.Tags = slices.Compact(out.Tags)
	})},
	{name: "the direct way differs from that through the hub", law: PathIndependence,
		direct: func(_, out *Common) { out.Note = "direct " + out.Note },
		back:   func(_, out *Common) { out.Note = strings.TrimPrefix(out.Note, "direct ") }},
}

// jobs returns the conversions of a job with a bug; the zero bug is none.
func (b bug) jobs(t *testing.T) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	group := "batch.example.com"
	for version, obj := range map[string]runtime.Object{"v1alpha1": &alphaJob{}, "v1beta1": &betaJob{}, "v1": &hubJob{}} {
		if version != "v1beta1" || b.direct != nil {
			s.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: version, Kind: "Job"}, obj)
		}
	}
	to := func(_ context.Context, in *alphaJob, out *hubJob) error {
		toHub(in, out)
		if b.toHub != nil {
			b.toHub(in, out)
		}
		return nil
	}
	from := func(_ context.Context, in *hubJob, out *alphaJob) error {
		fromHub(in, out)
		if b.fromHub != nil {
			b.fromHub(in, out)
		}
		return nil
	}
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg, to, from)
	if b.direct != nil && err == nil {
		err = conversion.AddSpoke(reg,
			func(ctx context.Context, in *betaJob, out *hubJob) error { return to(ctx, (*alphaJob)(in), out) },
			func(ctx context.Context, in *hubJob, out *betaJob) error { return from(ctx, in, (*alphaJob)(out)) })
	}
	if b.direct != nil && err == nil {
		err = conversion.AddDirect(reg,
			func(_ context.Context, in *alphaJob, out *betaJob) error {
				if out.Spec = (*betaJob)(in.DeepCopyObject().(*alphaJob)).Spec; in.Spec != nil {
					b.direct(&in.Spec.Common, &out.Spec.Common)
				}
				return nil
			},
			func(_ context.Context, in *betaJob, out *alphaJob) error {
				if out.Spec = (*alphaJob)(in.DeepCopyObject().(*betaJob)).Spec; in.Spec != nil {
					b.back(&in.Spec.Common, &out.Spec.Common)
				}
				return nil
			})
	}
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// twin returns the same without the bug.
func (b bug) twin() bug {
	if b.direct == nil {
		return bug{}
	}
	same := func(_, _ *Common) {}
	return bug{direct: same, back: same}
}

// find returns a counterexample to each law, as Test would find it.
func find(t *testing.T, reg *conversion.Registry, seed uint64, only Law) map[Law]*counterexample {
	t.Helper()
	cfg := &config{funcs: jobFuncs, seed: seed}
	found := map[Law]*counterexample{}
	for _, kind := range reg.Kinds() {
		all := subjects(reg, cfg, kind)
		budget := cfg.budget(len(all))
		for _, s := range all {
			if found[s.law] != nil || only != "" && s.law != only {
				continue
			}
			c, err := s.search(t.Context(), budget)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				found[s.law] = c
			}
		}
	}
	return found
}

const catalogueSeeds = 10

func TestEachBugOfTheCatalogueIsFoundAndShrinks(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			reg := b.jobs(t)
			var iterations, lines int
			var slowest time.Duration
			for seed := range uint64(catalogueSeeds) {
				begin := time.Now()
				c := find(t, reg, seed, b.law)[b.law]
				if c == nil {
					t.Errorf("seed %d: %s does not find it", seed, b.law)
					continue
				}
				slowest = max(slowest, time.Since(begin))
				iterations = max(iterations, c.iteration+1)
				n := strings.Count(c.yaml(), "\n")
				if lines = max(lines, n); n > 10 {
					t.Errorf("seed %d: more than 10 lines:\n%s", seed, c.yaml())
				}
			}
			t.Logf("| %s | %s | %d | %v | %d |", b.name, b.law, iterations, slowest.Round(time.Millisecond), lines)
		})
	}
}

func TestNoLawFindsABugWhereThereIsNone(t *testing.T) {
	for _, b := range []bug{{}, bugs[len(bugs)-1]} {
		reg := b.twin().jobs(t)
		for _, c := range find(t, reg, 1, "") {
			t.Error(c.report())
		}
	}
}

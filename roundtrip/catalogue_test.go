package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/tier"
)

// Job is the test kind. Its versions differ in how they hold the limits: those that are
// not the hub have a map. The hub alone has an owner, whom the others keep in an annotation.
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
		Owner  string  `json:"owner,omitempty"`
	}
	// Common has an exported name because randfill fills exported fields alone.
	Common struct {
		Note     string              `json:"note,omitempty"`
		Tags     []string            `json:"tags,omitzero"`
		Replicas *int32              `json:"replicas,omitempty"`
		Serial   int64               `json:"serial,omitempty"`
		Mode     mode                `json:"mode,omitempty"`
		Memory   amount              `json:"memory,omitempty"`
		Since    *metav1.MicroTime   `json:"since,omitempty"`
		Port     *intstr.IntOrString `json:"port,omitempty"`
		Timeout  *metav1.Duration    `json:"timeout,omitempty"`
		At       *time.Time          `json:"at,omitempty"`
		Total    uint64              `json:"total,omitempty"`
		Host     string              `json:"host,omitempty"`
		Label    string              `json:"label,omitempty"`
		Template *metav1.ObjectMeta  `json:"template,omitempty"`
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
	if c.Port != nil {
		out.Port = new(*c.Port)
	}
	if c.Timeout != nil {
		out.Timeout = new(*c.Timeout)
	}
	if c.At != nil {
		out.At = new(*c.At)
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
		out.Spec = &hubSpec{j.Spec.copy(), slices.Clone(j.Spec.Limits), j.Spec.Owner}
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
		out.Spec = &hubSpec{in.Spec.copy(), sorted(in.Spec.Limits), in.Annotations[keptOwner]}
	}
	delete(out.Annotations, keptOwner)
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
	if in.Spec.Owner != "" {
		annotate(out, keptOwner, in.Spec.Owner)
	}
}

const (
	keptOwner = "example.com/owner"
	keptNote  = "example.com/note"
)

func annotate(out *alphaJob, name, value string) {
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[name] = value
}

// bug is what may be wrong with the conversions of a job; each part is done after the
// right thing has been.
type bug struct {
	name    string
	variant string // of the same mistake
	law     Law    // that finds it, and maybe not alone
	toHub   func(in *alphaJob, out *hubJob)
	fromHub func(in *hubJob, out *alphaJob)
	// third is done on the way to v1beta1, a version more.
	third func(in *hubJob, out *alphaJob)
	// spokeMode and hubMode are the defaults of the mode.
	spokeMode, hubMode mode
	// internal makes the hub the internal version, and leaves one version that is seen.
	internal bool
	// definition changes the CustomResourceDefinition; without it, the case has no definition.
	definition func(crd string) string
	// lines is how many lines of YAML the smallest object may have; ten if zero.
	lines int
	// twin is the same without the bug; the zero bug if nil.
	twin *bug
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
	{name: "dropped field", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) { out.Note = "" })},
	{name: "nil becomes empty", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Tags = append([]string{}, in.Tags...) })},
	{name: "empty becomes nil", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) { out.Tags = append([]string(nil), in.Tags...) })},
	{name: "lost pointer to zero", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Replicas != nil && *out.Replicas == 0 {
			out.Replicas = nil
		}
	})},
	{name: "int64 through float64", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Serial = int64(float64(in.Serial)) })},
	{name: "int64 cut to 32 bits", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) { out.Serial = int64(int32(in.Serial)) })},
	{name: "list in the order of a map", law: Determinism, toHub: func(in *alphaJob, out *hubJob) {
		if in.Spec != nil {
			out.Spec.Limits = unsorted(in.Spec.Limits)
		}
	}},
	{name: "default in one direction", law: RoundTrip, toHub: inSpec(func(in, out *Common) { out.Mode = cmp.Or(in.Mode, "slow") })},
	{name: "value unknown to the old version", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) {
		if out.Mode == "turbo" {
			out.Mode = "fast"
		}
	})},
	{name: "replaced labels", law: RoundTrip, toHub: func(_ *alphaJob, out *hubJob) { out.Labels = map[string]string{"converted": "yes"} }},
	{name: "truncated timestamp", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Since != nil {
			out.Since.Time = out.Since.Truncate(time.Second)
		}
	})},
	{name: "sorted list of the input", law: InputUntouched, toHub: inSpec(func(in, _ *Common) { slices.Sort(in.Tags) })},
	{name: "changed name of the input", law: InputUntouched, fromHub: func(in *hubJob, _ *alphaJob) { in.Name += "-seen" }},
	{name: "panic without spec", law: Partial, toHub: func(in *alphaJob, out *hubJob) { out.Spec.Note = in.Spec.Note }},
	{name: "normalized quantity", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) {
		if in.Memory != "" {
			q := resource.MustParse(string(in.Memory))
			out.Memory = amount(q.String())
		}
	})},
	{name: "dropped embedded metadata", law: RoundTrip, toHub: inSpec(func(in, out *Common) {
		if in.Template != nil {
			out.Template = &metav1.ObjectMeta{Name: in.Template.Name, Labels: in.Template.Labels}
		}
	})},
	{name: "merged equal elements", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		slices.Sort(out.Tags)
		out.Tags = slices.Compact(out.Tags)
	})},
	{name: "dropped user annotation", law: RoundTrip, toHub: func(_ *alphaJob, out *hubJob) { out.Annotations = nil }},
	{name: "swapped fields", law: RoundTrip, fromHub: inSpecBack(func(in, out *Common) {
		out.Note, out.Memory = string(in.Memory), amount(in.Note)
	})},
	{name: "only the first element", law: RoundTrip, toHub: inSpec(func(_, out *Common) { out.Tags = out.Tags[:min(1, len(out.Tags))] })},
	{name: "trimmed white space", law: RoundTrip, toHub: inSpec(func(_, out *Common) { out.Note = strings.TrimSpace(out.Note) })},
	{name: "folded case", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) { out.Note = strings.ToLower(out.Note) })},
	{name: "split at a separator in the text", law: RoundTrip, fromHub: inSpecBack(func(_, out *Common) {
		out.Note, _, _ = strings.Cut(out.Note, "/")
	})},
	{name: "clamped negative number", law: RoundTrip, toHub: inSpec(func(_, out *Common) { out.Serial = max(out.Serial, 0) })},
	{name: "time of the conversion", law: Determinism, toHub: func(_ *alphaJob, out *hubJob) {
		out.Annotations = map[string]string{"converted": time.Now().String()}
	}},
	{name: "aliased slice", law: Aliasing, toHub: inSpec(func(in, out *Common) { out.Tags = in.Tags })},
	{name: "aliased pointer", law: Aliasing, fromHub: inSpecBack(func(in, out *Common) { out.Replicas = in.Replicas })},
	{name: "stale annotation", law: Edited,
		toHub: func(in *alphaJob, out *hubJob) {
			if in.Spec != nil && in.Annotations[keptOwner] != "" {
				out.Spec.Note = in.Annotations[keptNote]
			}
			delete(out.Annotations, keptNote)
		},
		fromHub: func(in *hubJob, out *alphaJob) {
			if in.Spec != nil && in.Spec.Owner != "" {
				annotate(out, keptNote, in.Spec.Note)
			}
		}},
	{name: "different defaults", law: Defaulting, spokeMode: "slow", hubMode: "fast", twin: &bug{spokeMode: "slow", hubMode: "slow"}},
	{name: "dropped field of an internal hub", law: RoundTrip, internal: true, twin: &bug{internal: true},
		fromHub: inSpecBack(func(_, out *Common) { out.Since = nil })},
	{name: "lost field that only an internal hub has", law: RoundTrip, internal: true, twin: &bug{internal: true},
		fromHub: func(_ *hubJob, out *alphaJob) { delete(out.Annotations, keptOwner) }},
	{name: "dropped field of a third version", law: PathIndependence, twin: &bug{third: func(*hubJob, *alphaJob) {}},
		third: inSpecBack(func(_, out *Common) { out.Note = "" })},
	{name: "schema lacks a field", law: Drift, twin: defined, definition: func(crd string) string {
		return strings.ReplaceAll(crd, "                serial: {type: integer, format: int64},\n", "")
	}},
	{name: "Go type lacks a field", law: Drift, twin: defined, definition: func(crd string) string {
		return strings.Replace(crd, "note: {type: string}", "note: {type: string}, remark: {type: string}", 1)
	}},
	{name: "null of a zero timestamp", law: Acceptance, twin: defined, definition: func(crd string) string { return crd },
		toHub: inSpec(func(_, out *Common) {
			if out.Since == nil {
				out.Since = &metav1.MicroTime{}
			}
		})},
	{name: "enum lacks a value", law: Acceptance, twin: defined, definition: func(crd string) string {
		return strings.Replace(crd, "enum: [slow, fast, turbo]", "enum: [slow, fast]", 1)
	}},
	{name: "lower maximum", law: Acceptance, twin: defined, definition: func(crd string) string {
		return strings.Replace(crd, "replicas: {", "replicas: {maximum: 9, ", 1)
	}},
	narrower("maxLength with a pattern", 10, "host: {type: string, maxLength: 253,", "host: {type: string, maxLength: 63,"),
	narrower("minLength with a pattern", 10, "host: {type: string,", "host: {type: string, minLength: 2,"),
	narrower("maxItems", 50, "tags: {type: array,", "tags: {type: array, maxItems: 40,"),
	narrower("maxProperties", 50, "additionalProperties: {type: string}}}},", "additionalProperties: {type: string}, maxProperties: 40}}},"),
	narrower("maximum", 10, "serial: {type: integer, format: int64}", "serial: {type: integer, format: int64, maximum: 70000}"),
	narrower("exclusive maximum", 10, "total: {type: integer, format: int64,", "total: {type: integer, format: int64, exclusiveMaximum: true,"),
	narrower("format", 10, "label: {type: string, format: k8s-long-name}", "label: {type: string, format: k8s-short-name}"),
	{name: "panic for a value that was valid", law: OutsideSchema, twin: defined, definition: func(crd string) string { return crd },
		toHub: inSpec(func(in, _ *Common) {
			if m := in.Mode; m != "" && m != "slow" && m != "fast" && m != "turbo" {
				panic("unknown mode " + m)
			}
		})},
	{name: "added field is pruned", law: Acceptance, twin: defined, definition: func(crd string) string {
		return strings.Replace(crd, "since: ", "sinc: ", 1)
	}},
}

// narrower is a definition of which the hub has a stricter schema for a field.
func narrower(bound string, lines int, field, stricter string) bug {
	return bug{name: "other " + bound + " in the hub", law: Acceptance, twin: defined, lines: lines, definition: func(crd string) string {
		i := strings.LastIndex(crd, field)
		return crd[:i] + strings.Replace(crd[i:], field, stricter, 1)
	}}
}

// faults are looked for in objects of the Go types, and of a definition.
var faults = []bug{
	{name: "only ten elements", law: RoundTrip, lines: 20, toHub: inSpec(func(_, out *Common) { out.Tags = out.Tags[:min(10, len(out.Tags))] })},
	{name: "only 50 elements", law: RoundTrip, lines: 60, toHub: inSpec(func(_, out *Common) { out.Tags = out.Tags[:min(50, len(out.Tags))] })},
	{name: "text cut at 20 characters", law: RoundTrip, toHub: inSpec(func(_, out *Common) { out.Note = cut(out.Note, 20) })},
	{name: "text cut at 63 characters", law: RoundTrip, toHub: inSpec(func(_, out *Common) { out.Note = cut(out.Note, 63) })},
	{name: "digits become a number", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if n, err := strconv.Atoi(out.Note); err == nil {
			out.Note = strconv.Itoa(n)
		}
	})},
	{name: "named port becomes a number", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Port != nil && !strings.HasSuffix(out.Port.StrVal, "%") {
			out.Port = new(intstr.FromInt32(int32(out.Port.IntValue())))
		}
	})},
	{name: "lost percentage", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Port != nil && strings.HasSuffix(out.Port.StrVal, "%") {
			out.Port = nil
		}
	})},
	{name: "lost 100%", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Port != nil && out.Port.StrVal == "100%" {
			out.Port = nil
		}
	})},
	{name: "duration of at most a day", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Timeout != nil {
			out.Timeout.Duration = min(out.Timeout.Duration, 24*time.Hour)
		}
	})},
	{name: "negative duration becomes positive", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Timeout != nil {
			out.Timeout.Duration = out.Timeout.Abs()
		}
	})},
	{name: "duration cut to milliseconds", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Timeout != nil {
			out.Timeout.Duration = out.Timeout.Truncate(time.Millisecond)
		}
	})},
	{name: "lost time before 1970", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Since != nil && out.Since.Unix() < 0 {
			out.Since = nil
		}
	})},
	{name: "lost fraction of a time", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.At != nil {
			*out.At = out.At.Truncate(time.Second)
		}
	})},
	{name: "lost time zone", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.At != nil {
			*out.At = out.At.UTC()
		}
	})},
	{name: "error for an annotation without JSON", law: Annotations,
		toHub: func(in *alphaJob, out *hubJob) {
			if text, ok := in.Annotations[keptNote]; ok && json.Unmarshal([]byte(text), new(string)) != nil {
				panic("no JSON")
			}
			delete(out.Annotations, keptNote)
		},
		fromHub: func(in *hubJob, out *alphaJob) {
			if in.Spec != nil && in.Spec.Owner != "" {
				annotate(out, keptNote, strconv.Quote("kept"))
			}
		}},
	{name: "shared slice", law: Aliasing, toHub: inSpec(func(_, out *Common) {
		if len(out.Tags) > 1 {
			return
		}
		out.Tags = sharedTags
	})},
	{name: "lost field with one enum value", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		if out.Mode == "turbo" {
			out.Replicas = nil
		}
	})},
}

var sharedTags = []string{"shared"}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// allBugs has the faults twice.
func allBugs() []bug {
	all := slices.Clone(bugs)
	for _, b := range faults {
		all = append(all, b)
		b.variant = "with a definition"
		b.definition, b.twin = defined.definition, defined
		all = append(all, b)
	}
	return append(all, bug{name: "uint64 through int64", law: RoundTrip, toHub: inSpec(func(_, out *Common) {
		out.Total = uint64(max(int64(out.Total), 0))
	})})
}

var defined = &bug{definition: func(crd string) string { return crd }}

const jobGroup = "batch.example.com"

// jobs returns the conversions of a job with a bug; the zero value has no bug.
func (b bug) jobs(t testing.TB) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	hub := "v1"
	if b.internal {
		hub = runtime.APIVersionInternal
	}
	for version, obj := range map[string]runtime.Object{"v1alpha1": &alphaJob{}, "v1beta1": &betaJob{}, hub: &hubJob{}} {
		if version != "v1beta1" || b.third != nil {
			s.AddKnownTypeWithName(schema.GroupVersionKind{Group: jobGroup, Version: version, Kind: "Job"}, obj)
		}
	}
	s.AddTypeDefaultingFunc(&alphaJob{}, func(obj any) {
		if j := obj.(*alphaJob); j.Spec != nil {
			j.Spec.Mode = cmp.Or(j.Spec.Mode, b.spokeMode)
		}
	})
	s.AddTypeDefaultingFunc(&hubJob{}, func(obj any) {
		if j := obj.(*hubJob); j.Spec != nil {
			j.Spec.Mode = cmp.Or(j.Spec.Mode, b.hubMode)
		}
	})
	to := func(_ context.Context, in *alphaJob, out *hubJob) error {
		toHub(in, out)
		if b.toHub != nil {
			b.toHub(in, out)
		}
		return nil
	}
	from := func(_ context.Context, in *hubJob, out *alphaJob) error {
		fromHub(in, out)
		if in.Spec != nil && len(out.Spec.Limits) < len(in.Spec.Limits) {
			return errors.New("a limit is there twice")
		}
		if b.fromHub != nil {
			b.fromHub(in, out)
		}
		return nil
	}
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg, to, from)
	if b.third != nil && err == nil {
		err = conversion.AddSpoke(reg,
			func(ctx context.Context, in *betaJob, out *hubJob) error { return to(ctx, (*alphaJob)(in), out) },
			func(ctx context.Context, in *hubJob, out *betaJob) error {
				err := from(ctx, in, (*alphaJob)(out))
				b.third(in, (*alphaJob)(out))
				return err
			})
	}
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// options are those with which a bug is looked for.
func (b bug) options(t *testing.T) []Option {
	t.Helper()
	if b.definition == nil {
		return []Option{Funcs(jobFuncs...)}
	}
	text, err := os.ReadFile("testdata/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return []Option{CheckLaw(OutsideSchema), CRD([]byte(b.definition(string(text)))), Normalize("the order of the limits means nothing", func(j *hubJob) {
		if j.Spec != nil {
			slices.SortFunc(j.Spec.Limits, func(a, b limit) int { return cmp.Compare(a.Name, b.Name) })
		}
	})}
}

// find returns a counterexample to each law, as Test would find it. For Drift, which needs
// no objects, it has none of its own.
func (b bug) find(t *testing.T, seed uint64, only Law, opts ...Option) map[Law]*counterexample {
	t.Helper()
	return findIn(t, b.jobs(t), only, slices.Concat(b.options(t), []Option{Seed(seed)}, opts)...)
}

// findIn returns a counterexample to each law, or to one alone.
func findIn(t *testing.T, reg *conversion.Registry, only Law, opts ...Option) map[Law]*counterexample {
	t.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		t.Fatal(err)
	}
	found := map[Law]*counterexample{}
	for _, kind := range reg.Kinds() {
		all := subjects(reg, cfg, kind)
		budget := cfg.budget(len(all))
		budget.least = budget.most // whatever the machine does beside it
		for _, s := range all {
			if found[s.law] != nil || only != "" && s.law != only {
				continue
			}
			if s.law == Drift {
				for _, difference := range s.drift() {
					found[Drift] = &counterexample{failure: &failure{err: errors.New(difference)}, subject: s}
				}
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

// seeds are those with which each bug of a catalogue is looked for.
func seeds() uint64 { return tier.Pick[uint64](1, 10) }

// planted is a mistake of the catalogue, or a variant of one, which has the same row.
type planted struct {
	name, variant string
	issue         string // of a real project
	law           Law
	lines         int
	find          func(t *testing.T, seed uint64) *counterexample
}

func catalogue() (all []planted) {
	for _, b := range slices.Concat(allBugs(), metadataBugs()) {
		find := func(t *testing.T, seed uint64) *counterexample { return b.find(t, seed, b.law)[b.law] }
		all = append(all, planted{name: b.name, variant: b.variant, law: b.law, lines: b.lines, find: find})
	}
	all = append(all, siblingBugs()...)
	for _, f := range pastFaults() {
		find := func(t *testing.T, seed uint64) *counterexample {
			return f.find(t, Total, f.history(t), Seed(seed))[Total]
		}
		all = append(all, planted{name: f.name, issue: f.issue, law: Total, find: find})
	}
	return append(all, podCatalogue()...)
}

// Each bug of the catalogue is found and shrinks.
// CATALOGUE.md is what the test of the catalogue has measured: see CRDKIT_ROUNDTRIP_UPDATE.
func TestCatalogue_EachBugIsFound(t *testing.T) {
	type row struct {
		head           string // of the line
		objects, lines int    // the most
		searched       int    // with how many seeds
	}
	var rows []*row
	byName := map[string]*row{}
	for _, b := range catalogue() {
		r := byName[b.name]
		if r == nil {
			name := b.name
			if repository, number, ok := strings.Cut(b.issue, "#"); ok {
				name += fmt.Sprintf(" ([%s](https://github.com/%s/issues/%s))", b.issue, repository, number)
			}
			r = &row{head: fmt.Sprintf("|%s|%s|", name, b.law)}
			byName[b.name], rows = r, append(rows, r)
		}
		t.Run(strings.TrimSuffix(b.name+"/"+b.variant, "/"), func(t *testing.T) {
			for seed := range seeds() {
				r.searched++
				c := b.find(t, seed)
				if c == nil {
					t.Errorf("seed %d: %s does not find it", seed, b.law)
					continue
				}
				if b.law == Drift {
					continue
				}
				r.objects = max(r.objects, c.iteration+1)
				n := strings.Count(c.yaml(), "\n")
				if r.lines = max(r.lines, n); n > cmp.Or(b.lines, 10) {
					t.Errorf("seed %d: %d lines:\n%s", seed, n, c.report())
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	const file = "CATALOGUE.md"
	table := fmt.Sprintf(catalogueHead, len(rows))
	for _, r := range rows {
		table += fmt.Sprintf("%s%d|%d|\n", r.head, r.objects, r.lines)
	}
	if updating() {
		if !tier.Verify() || slices.ContainsFunc(rows, func(r *row) bool { return r.searched == 0 }) {
			t.Fatalf("%s needs the numbers of all rows: set %s=1, and run the whole test", file, tier.Variable)
		}
		if err := os.WriteFile(file, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The numbers are not compared: a bug may depend on the order of a map, and how long each of several
	// paths is looked at depends on the machine.
	numbers := regexp.MustCompile(`\d+\|\d+\|\n`)
	if numbers.ReplaceAllString(string(text), "\n") != numbers.ReplaceAllString(table, "\n") {
		t.Errorf("%s has other text or other rows than:\n%s", file, table)
	}
}

const catalogueHead = `# Bugs that the laws find

` + "`roundtrip.Test`" + ` finds each of these %d mistakes, which occur in conversions of real operators. A test plants each
one in the conversions of a small kind, or of a kind with a pod template, and searches with ten
seeds, where it applies both with objects of the Go types and with objects of a CRD. The numbers are
the largest of these searches: objects is how many the search made until it found the mistake, and
lines is how many lines of YAML the reported object has after shrinking. The law drift needs no
objects. A mistake with a link comes from that issue, and is found with the CRDs of earlier releases.

The test writes this page: CRDKIT_VERIFY=1 CRDKIT_ROUNDTRIP_UPDATE=true go test -run Catalogue .

|mistake|law|objects|lines|
|---|---|---|---|
`

// Otherwise SkipLaw would refuse the law.
func TestLaws_AllAreKnown(t *testing.T) {
	for _, l := range laws {
		if !slices.Contains(allLaws, l.law) {
			t.Errorf("%s is not in allLaws", l.law)
		}
	}
}

// A correct conversion violates no law.
func TestLaws_NoBug(t *testing.T) {
	twins := map[*bug]string{{}: "a twin without anything"}
	for _, b := range allBugs() {
		if b.twin != nil {
			twins[b.twin] = b.name
		}
	}
	for twin, name := range twins {
		t.Run(name, func(t *testing.T) {
			for _, c := range twin.find(t, 1, "", Iterations(100)) {
				t.Error(c.report())
			}
		})
	}
}

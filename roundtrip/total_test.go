package roundtrip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/conversion"
	crdschema "github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// A thing has any spec; v1 is the hub.
type (
	betaThing[S any] struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              *S `json:"spec,omitempty"`
	}
	hubThing[S any] betaThing[S]
)

func (t *betaThing[S]) DeepCopyObject() runtime.Object { return copyOf(t) }
func (t *hubThing[S]) DeepCopyObject() runtime.Object  { return copyOf(t) }

func copyOf[T any](in *T) *T {
	text, err := json.Marshal(in)
	out := new(T)
	if err := errors.Join(err, json.Unmarshal(text, out)); err != nil {
		panic(err)
	}
	return out
}

// pastFault is a conversion that is right for all that today's definition accepts, and wrong for what
// an earlier release has stored.
type pastFault struct {
	issue, name string
	// was, is and hub are schemas of the spec: that of v1beta1 in the earlier release and
	// today, and that of v1.
	was, is, hub string
	registry     func(t testing.TB) *conversion.Registry
	// relabelled says that the earlier release stored v1 and had the strategy None.
	relabelled bool
}

func fault[A, B any](issue, name, was, is, hub string, to func(in A) (B, error), from func(in B) (A, error)) pastFault {
	return pastFault{issue: issue, name: name, was: was, is: is, hub: hub, registry: func(t testing.TB) *conversion.Registry {
		t.Helper()
		s := runtime.NewScheme()
		for version, obj := range map[string]runtime.Object{"v1beta1": &betaThing[A]{}, "v1": &hubThing[B]{}} {
			s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Thing"}, obj)
		}
		reg := conversion.NewRegistry(s)
		err := conversion.AddSpoke(reg, func(_ context.Context, in *betaThing[A], out *hubThing[B]) error {
			return apply(in.Spec, &out.Spec, to)
		}, func(_ context.Context, in *hubThing[B], out *betaThing[A]) error {
			return apply(in.Spec, &out.Spec, from)
		})
		expect.NoError(t, err)
		return reg
	}}
}

func apply[A, B any](in *A, out **B, convert func(in A) (B, error)) error {
	if in == nil {
		return nil
	}
	made, err := convert(*copyOf(in))
	*out = &made
	return err
}

// same is for two versions with one spec.
func same[S any](issue, name, was, is string) pastFault {
	convert := func(in S) (S, error) { return in, nil }
	return fault(issue, name, was, is, is, convert, convert)
}

// pastFaults are of the kind of what issues of real projects report.
func pastFaults() []pastFault {
	type (
		scaler struct {
			Max int `json:"max,omitempty"`
		}
		collector struct {
			Autoscaler *scaler `json:"autoscaler,omitempty"`
		}
		flat struct {
			Max int `json:"max,omitempty"`
		}
		gates struct {
			FeatureGates []string `json:"featureGates,omitzero"`
		}
		phase struct {
			Phase string `json:"phase,omitempty"`
		}
		healthCheck struct {
			MaxUnhealthy *string `json:"maxUnhealthy,omitempty"`
		}
		quota struct {
			CPU *resource.Quantity `json:"cpu,omitempty"`
		}
		workspace struct {
			Timeout *metav1.Duration `json:"timeout,omitempty"`
		}
		gateway struct {
			Type string `json:"type,omitempty"`
		}
		template struct {
			Image string `json:"image,omitempty"`
		}
		task struct {
			Steps        []string  `json:"steps,omitzero"`
			StepTemplate *template `json:"stepTemplate,omitempty"`
		}
		variable struct {
			Name  string `json:"name"`
			Value string `json:"value,omitempty"`
		}
		pipeline struct {
			Env []variable `json:"env,omitzero"`
		}
	)
	const variables = `{type: object, required: [name], properties: {name: {type: string}, value: {type: string, minLength: 1}}}`
	relabelled := same[gates]("longhorn/longhorn#3631", "strategy was None",
		`{properties: {featureGates: {type: object, additionalProperties: {type: boolean}}}}`,
		`{properties: {featureGates: {type: array, items: {type: string}}}}`)
	relabelled.relabelled = true
	return []pastFault{
		fault("open-telemetry/opentelemetry-operator#4288", "null was allowed",
			`{properties: {autoscaler: {type: object, nullable: true, properties: {max: {type: integer, minimum: 1}}}}}`,
			`{required: [autoscaler], properties: {autoscaler: {type: object, required: [max], properties: {max: {type: integer, minimum: 1}}}}}`,
			`{required: [max], properties: {max: {type: integer, minimum: 1}}}`,
			func(in collector) (flat, error) { return flat{in.Autoscaler.Max}, nil },
			func(in flat) (collector, error) { return collector{&scaler{in.Max}}, nil }),
		same[gates]("kubevirt/hyperconverged-cluster-operator#4552", "object became a list",
			`{properties: {featureGates: {type: object, properties: {nested: {type: boolean}}}}}`,
			`{properties: {featureGates: {type: array, items: {type: string}}}}`),
		same[phase]("grafana/grafana-operator#85", "number became a string",
			`{properties: {phase: {type: integer}}}`, `{properties: {phase: {type: string, minLength: 1}}}`),
		same[healthCheck]("openshift/machine-api-operator#909", "number or string became a string",
			`{properties: {maxUnhealthy: {x-kubernetes-int-or-string: true}}}`, `{properties: {maxUnhealthy: {type: string}}}`),
		relabelled,
		same[quota]("kubernetes-sigs/controller-runtime#1032", "quantity was any string",
			`{properties: {cpu: {type: string}}}`, `{properties: {cpu: {type: string, pattern: '^[1-9][0-9]{0,3}m?$'}}}`),
		same[workspace]("gitpod-io/gitpod#16687", "duration was any string",
			`{properties: {timeout: {type: string}}}`, `{properties: {timeout: {type: string, pattern: '^[1-5]?[1-9]s$'}}}`),
		fault("kumahq/kuma#18330", "enum value was removed",
			`{properties: {type: {type: string, enum: [BUILTIN, DELEGATED, PROVIDED]}}}`,
			`{properties: {type: {type: string, enum: [DELEGATED, PROVIDED]}}}`,
			`{properties: {type: {type: string, enum: [delegated, provided]}}}`,
			func(in gateway) (out gateway, err error) {
				if in.Type == "BUILTIN" {
					return out, errors.New("unknown type BUILTIN")
				}
				return gateway{strings.ToLower(in.Type)}, nil
			},
			func(in gateway) (gateway, error) { return gateway{strings.ToUpper(in.Type)}, nil }),
		fault("tektoncd/pipeline#6823", "required field was optional",
			`{properties: {steps: {type: array, items: {type: string}}, stepTemplate: {type: object, properties: {image: {type: string}}}}}`,
			`{required: [stepTemplate], properties: {steps: {type: array, items: {type: string}}, stepTemplate: {type: object, properties: {image: {type: string, minLength: 1}}}}}`,
			`{required: [stepTemplate], properties: {steps: {type: array, items: {type: string}}, stepTemplate: {type: object, properties: {image: {type: string, minLength: 1}}}}}`,
			func(in task) (task, error) { return task{in.Steps, &template{in.StepTemplate.Image}}, nil },
			func(in task) (task, error) { return in, nil }),
		fault("sky-uk/kfp-operator#161", "duplicate list keys",
			`{properties: {env: {type: array, items: `+variables+`}}}`,
			`{properties: {env: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: `+variables+`}}}`,
			`{properties: {env: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: `+variables+`}}}`,
			func(in pipeline) (pipeline, error) {
				seen := map[string]bool{}
				for _, v := range in.Env {
					if seen[v.Name] {
						return in, fmt.Errorf("duplicate entry %q", v.Name)
					}
					seen[v.Name] = true
				}
				return in, nil
			},
			func(in pipeline) (pipeline, error) { return in, nil }),
	}
}

// thingDefinition returns a definition with the schemas of the specs of two versions.
func thingDefinition(conversion, storage, beta, hub string) string {
	text := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com},
		spec: {group: example.com, scope: Namespaced, names: {kind: Thing, listKind: ThingList, plural: things, singular: thing},
		conversion: ` + conversion + `, versions: [`
	for version, spec := range map[string]string{"v1beta1": beta, "v1": hub} {
		spec = strings.Replace(spec, "{", "{type: object, ", 1)
		text += fmt.Sprintf("{name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}, ",
			version, version == storage, spec)
	}
	return text + "]}}"
}

const (
	byWebhook = `{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://localhost/"}}}`
	byNone    = `{strategy: None}`
)

// history is what [History] reads in a file.
func (f pastFault) history(t testing.TB) Option {
	t.Helper()
	text := thingDefinition(byWebhook, "v1beta1", f.was, f.hub)
	if f.relabelled {
		text = thingDefinition(byNone, "v1", f.was, f.was)
	}
	return historyOf(t, text)
}

func historyOf(t testing.TB, texts ...string) Option {
	t.Helper()
	return func(c *config) {
		for i, text := range texts {
			d, err := crdschema.Parse([]byte(text))
			expect.NoError(t, err)
			c.history = append(c.history, release{d, fmt.Sprintf("v0.%d", i+1), ""})
		}
	}
}

func (f pastFault) find(t *testing.T, only Law, opts ...Option) map[Law]*counterexample {
	t.Helper()
	today := CRD([]byte(thingDefinition(byWebhook, "v1", f.is, f.hub)))
	return findIn(t, f.registry(t), only, append(opts, today)...)
}

// Total finds what no other law does.
// Objects that today's definition accepts do not show them.
func TestTotal_BesideOtherLaws(t *testing.T) {
	for _, f := range pastFaults() {
		t.Run(f.name, func(t *testing.T) {
			for _, c := range f.find(t, "", Seed(1), Iterations(tier.Pick(30, 100))) {
				t.Error(c.report())
			}
		})
	}
}

// number is the spec of things whose number must not be above ten in one mode.
type number struct {
	Count int    `json:"count,omitempty"`
	Mode  string `json:"mode,omitempty"`
}

const (
	anyNumber   = `{properties: {count: {type: integer}}}`
	smallNumber = `{properties: {count: {type: integer, maximum: 10}, mode: {type: string, enum: [slow, fast]}}}`
)

func numbers(convert func(in number) (number, error)) pastFault {
	back := func(in number) (number, error) { return in, nil }
	return fault("", "", anyNumber, smallNumber, smallNumber, convert, back)
}

// No release has accepted such an object: the first lacks the mode, and the second refuses the count.
func TestTotal_FindsWhatRatchetingKeeps(t *testing.T) {
	f := numbers(func(in number) (number, error) {
		if in.Mode == "fast" && in.Count > 10 {
			return in, errors.New("too fast")
		}
		return in, nil
	})
	for seed := range tier.Pick[uint64](1, 3) { // each within 501 objects
		c := f.find(t, Total, historyOf(t,
			thingDefinition(byWebhook, "v1beta1", anyNumber, smallNumber),
			thingDefinition(byWebhook, "v1beta1", smallNumber, smallNumber)), Seed(seed), Iterations(2000))[Total]
		if c == nil {
			t.Fatalf("seed %d: nothing is found", seed)
		}
		const from = "v0.1 could have stored it, and v0.2 could have let it pass in an update"
		if !strings.Contains(c.report(), "count: 11\n\t  mode: fast\n\n") || c.sample.from != from {
			t.Errorf("seed %d:\n%s", seed, c.report())
		}
	}
}

func TestTotal_ReportsReleaseAndPanic(t *testing.T) {
	f := pastFaults()[0]
	c := f.find(t, Total, f.history(t), Seed(1))[Total]
	if c == nil {
		t.Fatal("nothing is found")
	}
	want := "\tapiVersion: example.com/v1beta1\n\tkind: Thing\n\tmetadata:\n\t  name: a\n\tspec: {}\n\n"
	for _, want := range []string{want, "\n\nv0.1 could have stored it.\n", "nil pointer dereference", "where it panics:"} {
		if !strings.Contains(c.report(), want) {
			t.Errorf("no %q in:\n%s", want, c.report())
		}
	}
}

func TestTotal_FindsSilentLosses(t *testing.T) {
	const list = `{properties: {env: {type: array, items: {type: object, properties: {name: {type: string}}}}}}`
	const open = `{x-kubernetes-preserve-unknown-fields: true, properties: {count: {type: integer}}}`
	type named struct {
		Name string `json:"name,omitempty"`
	}
	type names struct {
		Env []named `json:"env,omitzero"`
	}
	twice := same[names]("", "", list, list)
	twice.registry = fault("", "", list, list, list, func(in names) (out names, _ error) {
		for _, n := range in.Env {
			if len(out.Env) == 0 || out.Env[len(out.Env)-1] != n {
				out.Env = append(out.Env, n)
			}
		}
		return out, nil
	}, func(in names) (names, error) { return in, nil }).registry
	for want, f := range map[string]pastFault{
		"- spec.env":        twice,
		"its Go type drops": same[number]("", "", open, open),
	} {
		c := f.find(t, Total, f.history(t), Seed(1))[Total]
		if c == nil || !strings.Contains(c.report(), want) {
			t.Errorf("want %q, got %v", want, c)
		}
	}
}

// An annotation keeps all that a spoke cannot express.
func TestTotal_LosslessLosesNothing(t *testing.T) {
	type none struct{}
	find := func(lossless bool) *counterexample {
		f := fault("", "", `{}`, `{}`, anyNumber,
			func(none) (number, error) { return number{}, nil },
			func(number) (none, error) { return none{}, nil })
		reg := f.registry(t)
		if lossless {
			beta := schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Thing"}
			expect.NoError(t, conversion.Lossless(reg, beta))
		}
		text := thingDefinition(byWebhook, "v1", `{}`, anyNumber)
		return findIn(t, reg, Total, CRD([]byte(text)), historyOf(t, text), Iterations(100))[Total]
	}
	if find(false) == nil {
		t.Error("a loss is not found")
	}
	if c := find(true); c != nil {
		t.Error(c.report())
	}
}

func TestRefuse_AllowsErrorsAndNoPanics(t *testing.T) {
	errTooMany := errors.New("too many")
	tooMany := Refuse("more than ten are for nothing", func(err error) bool { return errors.Is(err, errTooMany) })
	anything := Refuse("all is well", func(error) bool { return true })
	f := numbers(func(in number) (number, error) {
		if in.Count > 10 {
			return in, errTooMany
		}
		return in, nil
	})
	if f.find(t, Total, f.history(t), Seed(1))[Total] == nil {
		t.Error("nothing is found")
	}
	if c := f.find(t, Total, f.history(t), Seed(1), tooMany)[Total]; c != nil {
		t.Error(c.report())
	}
	f = numbers(func(in number) (number, error) {
		if in.Count > 10 {
			panic(errTooMany)
		}
		return in, nil
	})
	c := f.find(t, Total, f.history(t), Seed(1), anything)[Total]
	if c == nil || !strings.Contains(c.report(), "some conversions fail, see roundtrip.Refuse: all is well\n") {
		t.Errorf("got %v", c)
	}
	today := CRD([]byte(thingDefinition(byWebhook, "v1", smallNumber, smallNumber)))
	_, err := newConfigFor(f.registry(t), []Option{today, anything})
	expect.ErrorContains(t, err, "roundtrip.Refuse: it needs earlier releases")
	_, err = newConfig([]Option{Refuse("", nil)})
	expect.ErrorContains(t, err, "roundtrip.Refuse: it needs a reason")
}

// A field that was unknown and is known today had any value.
func TestTotal_FieldsThatWereUnknown(t *testing.T) {
	f := numbers(func(in number) (number, error) { return in, nil })
	const nothing = `{}`
	for name, text := range map[string]string{
		"of a part":  thingDefinition(byNone, "v1beta1", `{x-kubernetes-preserve-unknown-fields: true}`, smallNumber),
		"of all":     strings.Replace(thingDefinition(byNone, "v1beta1", nothing, nothing), "spec: {group", "spec: {preserveUnknownFields: true, group", 1),
		"not stored": thingDefinition(byNone, "v1beta1", nothing, smallNumber),
	} {
		c := f.find(t, Total, historyOf(t, text), Seed(1))[Total]
		if found := c != nil && strings.Contains(c.report(), "cannot unmarshal"); found != (name != "not stored") {
			t.Errorf("%s: got %v", name, c)
		}
	}
}

// Files that controller-gen writes do not have the strategy, so that of an earlier release counts only if
// today's definition has one.
func TestTotal_WaysToBeStored(t *testing.T) {
	reg := same[number]("", "", smallNumber, smallNumber).registry(t)
	releases := historyOf(t,
		thingDefinition(byNone, "v1beta1", smallNumber, smallNumber),
		thingDefinition(byNone, "v1", smallNumber, smallNumber),
		thingDefinition(byWebhook, "v1", smallNumber, smallNumber))
	for strategy, want := range map[string]map[string][]string{
		byNone: {
			"v1beta1": {"v0.1 v1beta1: "},
			"v1":      {"v0.2 v1: ,v0.3,today's definition", "v0.3 v1: ,today's definition"},
		},
		byWebhook: {
			"v1beta1": {"v0.1 v1: ", "v0.1 v1beta1: "},
			"v1": {
				"v0.1 v1: v0.2", "v0.1 v1beta1: v0.2",
				"v0.2 v1: ,v0.3,today's definition", "v0.2 v1beta1: ,v0.3,today's definition",
				"v0.3 v1: ,today's definition",
			},
		},
	} {
		today := CRD([]byte(thingDefinition(strategy, "v1", smallNumber, smallNumber)))
		c, err := newConfigFor(reg, []Option{today, releases})
		expect.NoError(t, err)
		got := map[string][]string{}
		for _, stored := range reg.Kinds()[0].Versions {
			for _, o := range c.origins(reg.Kinds()[0], stored) {
				var writers []string
				for _, w := range o.writers {
					writers = append(writers, w.name)
				}
				got[stored] = append(got[stored], fmt.Sprintf("%s %s: %s", o.name, o.written, strings.Join(writers, ",")))
			}
			slices.Sort(got[stored])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
}

// The API server, with the fault as its webhook, cannot list the objects that are found.
func TestTotal_TheServerCannotReadThem(t *testing.T) {
	tier.VerifyOnly(t, "starts twenty API servers")
	for _, f := range pastFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := f.find(t, Total, f.history(t), Seed(1))[Total]
			if c == nil {
				t.Fatal("nothing is found")
			}
			harmless := `{"apiVersion": "example.com/` + c.subject.path[0] + `", "kind": "Thing", "metadata": {"name": "a"}}`
			for object, fails := range map[string]bool{string(c.object): true, harmless: false} {
				server := apiservertest.Start(t, apiservertest.Stored([]byte(object)),
					apiservertest.Manifests([]byte(thingDefinition(byWebhook, "v1", f.is, f.hub))),
					apiservertest.Handler(conversion.NewHandler(f.registry(t))))
				client, err := dynamic.NewForConfig(server.Config())
				expect.NoError(t, err)
				things := schema.GroupVersionResource{Group: "example.com", Version: c.subject.path[1], Resource: "things"}
				_, err = client.Resource(things).List(t.Context(), metav1.ListOptions{})
				if (err != nil) != fails || fails && !strings.Contains(err.Error(), "cannot convert Thing") {
					t.Errorf("%s: got %v", object, err)
				}
			}
		})
	}
}

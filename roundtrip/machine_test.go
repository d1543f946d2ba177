package roundtrip

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// A machine has what operators' types have, and its versions are the same.
type (
	machine struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              machineSpec    `json:"spec,omitempty"`
		Status            *machineStatus `json:"status,omitempty"`
	}
	machineV1   machine
	machineSpec struct {
		Replicas  *int32                  `json:"replicas,omitempty"`
		MaxSurge  *intstr.IntOrString     `json:"maxSurge,omitempty"`
		Timeout   *metav1.Duration        `json:"timeout,omitempty"`
		Since     *metav1.Time            `json:"since,omitempty"`
		Seen      *metav1.MicroTime       `json:"seen,omitempty"`
		Memory    *resource.Quantity      `json:"memory,omitempty"`
		Resources corev1.ResourceList     `json:"resources,omitempty"`
		Ref       *corev1.ObjectReference `json:"ref,omitempty"`
		Selector  *metav1.LabelSelector   `json:"selector,omitempty"`
		Data      []byte                  `json:"data,omitempty"`
	}
	machineStatus struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	}
)

func (m *machine) DeepCopyObject() runtime.Object {
	in, out := &m.Spec, &machine{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy()}
	out.Spec = machineSpec{
		Since: in.Since.DeepCopy(), Seen: in.Seen.DeepCopy(), Resources: in.Resources.DeepCopy(),
		Ref: in.Ref.DeepCopy(), Selector: in.Selector.DeepCopy(), Data: slices.Clone(in.Data),
	}
	if in.Replicas != nil {
		out.Spec.Replicas = new(*in.Replicas)
	}
	if in.MaxSurge != nil {
		out.Spec.MaxSurge = new(*in.MaxSurge)
	}
	if in.Timeout != nil {
		out.Spec.Timeout = new(*in.Timeout)
	}
	if in.Memory != nil {
		out.Spec.Memory = new(in.Memory.DeepCopy())
	}
	if m.Status != nil {
		out.Status = &machineStatus{Conditions: slices.Clone(m.Status.Conditions)}
	}
	return out
}

func (m *machineV1) DeepCopyObject() runtime.Object {
	return (*machineV1)((*machine)(m).DeepCopyObject().(*machine))
}

func machines(t *testing.T, change func(s *machineSpec)) *conversion.Registry {
	return twins(t, fleet.WithKind("Machine"), func(in *machine, out *machineV1) {
		c := in.DeepCopyObject().(*machine)
		out.Spec, out.Status = c.Spec, c.Status
		if change != nil {
			change(&out.Spec)
		}
	}, func(in *machineV1, out *machine) {
		c := in.DeepCopyObject().(*machineV1)
		out.Spec, out.Status = c.Spec, c.Status
	})
}

func machineDefinition(t *testing.T) Option {
	t.Helper()
	text, err := os.ReadFile("testdata/machine.yaml")
	expect.NoError(t, err)
	return CRD(text)
}

// A conversion that changes nothing keeps all laws, whatever the objects are made of. That
// the schema allows what some types cannot decode is how controller-gen writes it.
func TestMachine_RightConversion(t *testing.T) {
	for seed := range seeds() {
		options := []Option{Seed(seed), Iterations(30)}
		Test(t, machines(t, nil), options...)
		Test(t, machines(t, nil), append(options, machineDefinition(t), SkipLaw(Decoding, "durations are strings to controller-gen"))...)
	}
}

// controller-gen writes these schemas of a Quantity and of a Duration, and those with a limit
// with the markers in docs/troubleshooting.md.
func TestDecoding_LimitedText(t *testing.T) {
	const (
		quantity = `pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
		duration = "timeout: {type: string}"
		limited  = `maxLength: 32
                allOf: [{pattern: '^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$'}]
                ` + quantity
		limitedTimeout = `timeout: {type: string, minLength: 2, pattern: '^-?([0-9]{1,6}(\.[0-9]{1,6})?(h|m|s|ms|us|µs|ns)|([0-9]{1,6}h)?([0-5]?[0-9]m)?([0-5]?[0-9](\.[0-9]{1,9})?s)?)$'}`
	)
	text, err := os.ReadFile("testdata/machine.yaml")
	expect.NoError(t, err)
	for name, test := range map[string]struct {
		replace []string
		want    string // of the report
	}{
		"a quantity": {[]string{duration, limitedTimeout}, "quantities must match"},
		"a duration": {[]string{quantity, limited}, "time: "},
		"limited":    {[]string{quantity, limited, duration, limitedTimeout}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reg := machines(t, nil)
			// Other fields can be undecodable too.
			others := []string{"maxSurge: {", "maxSurge: {minimum: -2147483648, maximum: 2147483647, ", "seen: {type: string, format: date-time}", "seen: {type: string, enum: ['2000-01-01T00:00:00.000000Z']}"}
			definition := strings.NewReplacer(append(others, test.replace...)...).Replace(string(text))
			cfg, err := newConfigFor(reg, []Option{CRD([]byte(definition)), Seed(1), Iterations(2000)})
			expect.NoError(t, err)
			checked := 0
			for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
				if s.law != Decoding && (s.law != Acceptance || test.want != "") {
					continue // the limits leave room for what Go writes
				}
				checked++
				c, err := s.search(t.Context(), cfg.budget(1))
				if err != nil || (c != nil) != (test.want != "") {
					t.Fatalf("%v: got %v, %v", s, c, err)
				}
				if c != nil && (!strings.Contains(c.report(), "accepts what its Go type cannot decode") || !strings.Contains(c.report(), test.want)) {
					t.Errorf("got %s, want %s", c.report(), test.want)
				}
			}
			if checked == 0 {
				t.Error("nothing was checked")
			}
		})
	}
}

// Mistakes with the types of operators are found.
func TestMachine_MistakesAreFound(t *testing.T) {
	for name, change := range map[string]func(s *machineSpec){
		"a quantity becomes a whole number": func(s *machineSpec) {
			if s.Memory != nil {
				s.Memory = resource.NewQuantity(s.Memory.Value(), s.Memory.Format)
			}
		},
		"a percentage becomes a number": func(s *machineSpec) {
			if s.MaxSurge != nil {
				s.MaxSurge = new(intstr.FromInt32(int32(s.MaxSurge.IntValue())))
			}
		},
		"a duration is cut to minutes": func(s *machineSpec) {
			if s.Timeout != nil {
				s.Timeout.Duration -= s.Timeout.Duration % 60e9
			}
		},
	} {
		reg := machines(t, change)
		for _, options := range [][]Option{{Seed(1)}, {Seed(1), machineDefinition(t)}} {
			cfg, err := newConfigFor(reg, options)
			expect.NoError(t, err)
			found := false
			for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
				if s.law == RoundTrip {
					c, err := s.search(t.Context(), cfg.budget(18))
					expect.NoError(t, err)
					found = found || c != nil
				}
			}
			if !found {
				t.Errorf("%s: with %d options, nothing is found", name, len(options))
			}
		}
	}
}

// Each field is there in some objects, and is not in others.
func TestTypeGenerator_AllFields(t *testing.T) {
	reg := machines(t, nil)
	g, err := newTypeGenerator(reg, &config{generators: map[generatorKey]generator{}}, reg.Kinds()[0], "v1")
	expect.NoError(t, err)
	const objects = 200
	there := map[string]int{}
	for i := range objects {
		text, err := g.object(t.Context(), choices.New(1, "machine", i))
		expect.NoError(t, err)
		var m struct{ Spec, Status map[string]any }
		expect.NoError(t, json.Unmarshal(text, &m))
		for name := range m.Spec {
			there[name]++
		}
		for name := range m.Status {
			there[name]++
		}
	}
	for _, name := range []string{"replicas", "maxSurge", "timeout", "since", "seen", "memory", "resources", "ref", "selector", "data", "conditions"} {
		if n := there[name]; n == 0 || n == objects {
			t.Errorf("%s is in %d of %d objects", name, n, objects)
		}
	}
}

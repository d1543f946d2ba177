package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// gadget is the Go type of v1, and oldGadget that of v1beta1, with the same fields.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              gadgetSpec `json:"spec,omitzero"`
}

type gadgetSpec struct {
	Limit  *int32       `json:"limit,omitempty"`
	Owner  string       `json:"owner,omitempty"`
	Config gadgetConfig `json:"config,omitzero"`
}

type gadgetConfig struct {
	Level string `json:"level,omitempty"`
}

type oldGadget gadget

func (g *gadget) DeepCopyObject() runtime.Object {
	out := &gadget{g.TypeMeta, *g.ObjectMeta.DeepCopy(), g.Spec}
	if g.Spec.Limit != nil {
		out.Spec.Limit = new(*g.Spec.Limit)
	}
	return out
}

func (g *oldGadget) DeepCopyObject() runtime.Object {
	return (*oldGadget)((*gadget)(g).DeepCopyObject().(*gadget))
}

// gadgets are converted as they are, except for what the functions do.
func gadgets(t *testing.T, toHub, fromHub func(out *gadget)) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Gadget"}, &oldGadget{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, &gadget{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg, func(_ context.Context, in *oldGadget, out *gadget) error {
		copied := (*gadget)(in).DeepCopyObject().(*gadget)
		out.ObjectMeta, out.Spec = copied.ObjectMeta, copied.Spec
		toHub(out)
		return nil
	}, func(_ context.Context, in *gadget, out *oldGadget) error {
		copied := in.DeepCopyObject().(*gadget)
		out.ObjectMeta, out.Spec = copied.ObjectMeta, copied.Spec
		fromHub((*gadget)(out))
		return nil
	}))
	return reg
}

func asIs(*gadget) {}

// gadgetCRD has the versions, each with this schema of config.
func gadgetCRD(config string, versions ...string) Option {
	var all []string
	for _, v := range versions {
		all = append(all, fmt.Sprintf(`{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {
spec: {type: object, properties: {limit: {type: integer, format: int32}, owner: {type: string}, config: %s}}}}}}`, v, v == "v1", config))
	}
	return CRD(fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}, spec: {
group: example.com, scope: Namespaced, names: {kind: Gadget, plural: gadgets}, versions: [%s]}}`, strings.Join(all, ", ")))
}

const closed = `{type: object, properties: {level: {type: string}}}`

// Each of these losses is found, whatever the seed.
func TestTest_FindsLosses(t *testing.T) {
	const kept = "example.com/kept"
	for name, c := range map[string]struct {
		config         string
		toHub, fromHub func(out *gadget)
		law            Law
	}{
		"unknown fields that the schema preserves": {`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {level: {type: string}}}`, asIs, asIs, Decoding},
		"entries of a map":                         {`{type: object, additionalProperties: {type: string}}`, asIs, asIs, Decoding},
		"the annotation of kubectl": {closed, func(out *gadget) {
			delete(out.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}, asIs, RoundTrip},
		"labels of Kubernetes": {closed, func(out *gadget) {
			maps.DeleteFunc(out.Labels, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
		}, asIs, RoundTrip},
		"minus one": {closed, func(out *gadget) {
			if out.Spec.Limit != nil && *out.Spec.Limit == -1 {
				out.Spec.Limit = nil
			}
		}, asIs, RoundTrip},
		"the labels of a client, by those of a kept object": {closed, func(out *gadget) {
			var was gadget
			if text, ok := out.Annotations[kept]; ok && json.Unmarshal([]byte(text), &was) == nil {
				delete(out.Annotations, kept)
				out.Labels, out.Spec.Owner = was.Labels, was.Spec.Owner
			}
		}, func(out *gadget) {
			if out.Spec.Owner == "" {
				return
			}
			text, err := json.Marshal(out)
			out.Annotations = maps.Clone(out.Annotations)
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			if out.Annotations[kept], out.Spec.Owner = string(text), ""; err != nil {
				panic(err)
			}
		}, Edited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(tier.Pick(1, 5)) {
				if findIn(t, gadgets(t, c.toHub, c.fromHub), c.law, gadgetCRD(c.config, "v1beta1", "v1"), Seed(seed))[c.law] == nil {
					t.Errorf("seed %d: the law %s is not broken", seed, c.law)
				}
			}
		})
	}
}

type oldestGadget gadget

func (g *oldestGadget) DeepCopyObject() runtime.Object {
	return (*oldestGadget)((*gadget)(g).DeepCopyObject().(*gadget))
}

// Lossless keeps an empty owner on the way from the hub, unless the Go type of another version has dropped it.
func TestPathIndependence_LosslessKeepsZero(t *testing.T) {
	for name, c := range map[string]struct {
		fromHub func(out *gadget)
		broken  bool
	}{
		"a limit that v1alpha1 lacks":               {func(out *gadget) { out.Spec.Limit = nil }, false},
		"an owner that v1beta1 drops if it is long": {asIs, true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := gadgets(t, asIs, func(out *gadget) {
				if c.broken && len(out.Spec.Owner) > 10 {
					out.Spec.Owner = ""
				}
			})
			oldest := schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Gadget"}
			reg.Scheme().AddKnownTypeWithName(oldest, &oldestGadget{})
			expect.NoError(t, conversion.AddSpoke(reg, func(_ context.Context, in *oldestGadget, out *gadget) error {
				out.Spec = (*gadget)(in).DeepCopyObject().(*gadget).Spec
				return nil
			}, func(_ context.Context, in *gadget, out *oldestGadget) error {
				out.Spec = in.DeepCopyObject().(*gadget).Spec
				c.fromHub((*gadget)(out))
				return nil
			}))
			expect.NoError(t, conversion.Lossless(reg, oldest))
			for seed := range uint64(tier.Pick(1, 5)) {
				found := findIn(t, reg, PathIndependence, gadgetCRD(closed, "v1alpha1", "v1beta1", "v1"), Seed(seed))[PathIndependence]
				if c.broken && found == nil {
					t.Errorf("seed %d: the law is not broken", seed)
				} else if !c.broken && found != nil {
					t.Error(found.report())
				}
			}
		})
	}
}

// A version that a definition serves, and the registry does not convert, is a mistake.
func TestCRD_VersionWithoutConversion(t *testing.T) {
	_, err := newConfigFor(gadgets(t, asIs, asIs), []Option{gadgetCRD(closed, "v1alpha1", "v1beta1", "v1")})
	if want := "Gadget.example.com has version v1alpha1, which the registry does not convert"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The annotation of Lossless tells objects with and without defaults apart, which is no fault of the conversion.
func TestDefaulting_Lossless(t *testing.T) {
	const withDefault = `{properties: {count: {type: integer}, mode: {type: string, minLength: 1, default: low}}}`
	for name, c := range map[string]struct {
		mode   string // that the function sets in an object without one
		broken bool
	}{
		"no default of its own": {"", false},
		"the same default":      {"low", false},
		"another default":       {"high", true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := fault("", "", "", "", "", func(in number) (number, error) { return in, nil },
				func(in number) (number, error) { return number{Mode: cmp.Or(in.Mode, c.mode)}, nil }).registry(t)
			expect.NoError(t, conversion.Lossless(reg, schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Thing"}))
			found := findIn(t, reg, Defaulting, CRD([]byte(thingDefinition(byWebhook, "v1", withDefault, withDefault))), Seed(1))[Defaulting]
			if c.broken && found == nil {
				t.Error("the law is not broken")
			} else if !c.broken && found != nil {
				t.Error(found.report())
			}
		})
	}
}

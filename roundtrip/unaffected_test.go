package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// Route is a kind whose older version lacks the weight of a rule and the note of a label. An annotation
// has the rules and labels of the newer version.
const (
	routeDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: routes, singular: route, kind: Route}
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      timeout: {type: integer},
      rules: {type: array, %[1]s items: {type: object, required: [host], properties: {host: {type: string}, path: {type: string}}}},
      labels: {type: object, additionalProperties: {type: object, properties: {value: {type: string}}}}}}}}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      timeout: {type: integer},
      rules: {type: array, %[1]s items: {type: object, required: [host], properties: {host: {type: string}, path: {type: string}, weight: {type: integer}}}},
      labels: {type: object, additionalProperties: {type: object, properties: {value: {type: string}, note: {type: string}}}}}}}}}}
`
	keptRoute = "example.com/route"
)

// routeKeys are the list type of the rules.
const routeKeys = "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [host],"

type (
	routeRules  = []any
	routeLabels = map[string]any
	// restore gives the weights that have been kept to the rules, and the notes to the labels.
	restore func(rules, keptRules routeRules, labels, keptLabels routeLabels)
)

func weightOf(to, from any) {
	if w, ok := from.(map[string]any)["weight"]; ok {
		to.(map[string]any)["weight"] = w
	}
}

// byHost is correct.
func byHost(rules, kept routeRules, labels, keptLabels routeLabels) {
	for _, rule := range rules {
		host := rule.(map[string]any)["host"]
		if i := slices.IndexFunc(kept, func(r any) bool { return r.(map[string]any)["host"] == host }); i >= 0 {
			weightOf(rule, kept[i])
		}
	}
	for name, label := range labels {
		if note, ok, _ := unstructured.NestedString(keptLabels, name, "note"); ok {
			label.(map[string]any)["note"] = note
		}
	}
}

// without returns a part of a route without what the older version lacks.
func without(v any) any {
	v = runtime.DeepCopyJSONValue(v)
	if m, ok := v.(map[string]any); ok {
		delete(m, "weight")
		delete(m, "note")
		for name := range m {
			m[name] = without(m[name])
		}
	}
	if list, ok := v.([]any); ok {
		for i := range list {
			list[i] = without(list[i])
		}
	}
	return v
}

// restores are the wrong ways to restore the kept fields.
var restores = map[string]restore{
	"fields restored by index": func(rules, kept routeRules, labels, keptLabels routeLabels) {
		byHost(nil, nil, labels, keptLabels)
		for i := range min(len(rules), len(kept)) {
			weightOf(rules[i], kept[i])
		}
	},
	"panic if a list has grown": func(rules, kept routeRules, labels, keptLabels routeLabels) {
		byHost(rules, kept, labels, keptLabels)
		for i := range rules {
			if len(kept) > 0 && kept[i] == nil {
				delete(rules[i].(map[string]any), "weight")
			}
		}
	},
	"removed map entry comes back": func(rules, kept routeRules, labels, keptLabels routeLabels) {
		byHost(rules, kept, labels, keptLabels)
		if labels != nil {
			maps.Copy(labels, keptLabels)
		}
	},
	"edit drops fields of other elements": func(rules, kept routeRules, labels, keptLabels routeLabels) {
		if byHost(nil, nil, labels, keptLabels); reflect.DeepEqual(any(rules), without(kept)) {
			byHost(rules, kept, nil, nil)
		}
	},
}

// typedRoute is a Go type of v1, which always writes a status.
type typedRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec,omitempty"`
	Status            struct{}        `json:"status"`
}

func (r *typedRoute) DeepCopyObject() runtime.Object {
	return &typedRoute{TypeMeta: r.TypeMeta, ObjectMeta: *r.ObjectMeta.DeepCopy(), Spec: slices.Clone(r.Spec)}
}

// routes returns the conversions of a route. Without a function to restore fields, they are lossless.
func routes(t testing.TB, restore restore, typed bool) *conversion.Registry {
	t.Helper()
	spec := func(object map[string]any) (spec map[string]any, rules routeRules, labels routeLabels) {
		spec, _ = object["spec"].(map[string]any)
		rules, _ = spec["rules"].([]any)
		labels, _ = spec["labels"].(map[string]any)
		return spec, rules, labels
	}
	reg := conversion.NewRegistry(runtime.NewScheme())
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Route"}
	if typed {
		reg.Scheme().AddKnownTypeWithName(kind.GroupKind().WithVersion("v1"), &typedRoute{})
	}
	err := conversion.AddUnstructuredSpoke(reg, kind, "v1",
		func(_ context.Context, in, out *unstructured.Unstructured) error {
			annotations := out.GetAnnotations()
			text, found := annotations[keptRoute]
			delete(annotations, keptRoute)
			out.SetAnnotations(annotations)
			if typed {
				out.Object["status"] = map[string]any{}
			}
			if in.Object["spec"] != nil {
				out.Object["spec"] = runtime.DeepCopyJSONValue(in.Object["spec"])
			}
			kept := map[string]any{}
			if !found || kubejson.Unmarshal([]byte(text), &kept) != nil {
				return nil
			}
			_, rules, labels := spec(out.Object)
			_, keptRules, keptLabels := spec(kept)
			restore(rules, keptRules, labels, keptLabels)
			return nil
		},
		func(_ context.Context, in, out *unstructured.Unstructured) error {
			if in.Object["spec"] == nil {
				return nil
			}
			out.Object["spec"] = without(in.Object["spec"])
			if restore == nil || reflect.DeepEqual(out.Object["spec"], in.Object["spec"]) {
				return nil
			}
			text, err := json.Marshal(map[string]any{"spec": in.Object["spec"]})
			annotations := out.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[keptRoute] = string(text)
			out.SetAnnotations(annotations)
			return err
		})
	if restore == nil && err == nil {
		err = conversion.Lossless(reg, kind)
	}
	expect.NoError(t, err)
	return reg
}

func findRoute(t *testing.T, restore restore, keys string, typed bool, only Law, opts ...Option) map[Law]*counterexample {
	t.Helper()
	crd := CRD(fmt.Appendf(nil, routeDefinition, keys))
	return findIn(t, routes(t, restore, typed), only, append(opts, crd)...)
}

// siblingBugs are the rows of the catalogue that break the law edited by a single edit.
func siblingBugs() (all []planted) {
	for _, name := range slices.Sorted(maps.Keys(restores)) {
		for _, v := range []struct {
			keys, variant string
			typed         bool
		}{
			{routeKeys, "", false},
			{"", "in a list without keys", false},
			{routeKeys, "in a Go type that always writes a status", true},
		} {
			if v.keys == "" && strings.Contains(name, "map") {
				continue
			}
			all = append(all, planted{name: name, variant: v.variant, law: Edited, lines: 32, find: func(t *testing.T, seed uint64) *counterexample {
				return findRoute(t, restores[name], v.keys, v.typed, Edited, Seed(seed))[Edited]
			}})
		}
	}
	slices.SortFunc(all, func(a, b planted) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.variant, b.variant))
	})
	return all
}

// A conversion that keeps fields for elements by their keys breaks no law, nor does [conversion.Lossless].
func TestEdited_CorrectConversion(t *testing.T) {
	check := func(restore restore, keys string) {
		for _, c := range findRoute(t, restore, keys, false, "", Iterations(tier.Pick(100, 400))) {
			t.Error(c.report())
		}
	}
	check(byHost, routeKeys)
	check(nil, routeKeys)
	check(nil, "")
}

// The report names the edit, the object before it, and where the difference is.
func TestEdited_ReportShowsTheEdit(t *testing.T) {
	c := findRoute(t, restores["edit drops fields of other elements"], routeKeys, false, Edited, Seed(1))[Edited]
	if c == nil {
		t.Fatal("no failure")
	}
	for _, want := range []string{"a client of v1alpha1 ", "in this object of v1:\n", "the difference in v1, in what the edit does not affect (-before the edit +after):\n", "- spec.rules["} {
		if report := c.report(); !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
}

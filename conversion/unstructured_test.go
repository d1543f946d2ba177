package conversion_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

var oldPizza = v1beta1.GroupVersion.Group + "/v1alpha0"

// unstructuredRegistry knows v1alpha0, in which toppings are one string, and has
// no Go type for it.
func unstructuredRegistry(t testing.TB, change func(out *unstructured.Unstructured)) *conversion.Registry {
	t.Helper()
	reg := registry(t, nil, nil)
	gv, err := schema.ParseGroupVersion(oldPizza)
	expect.NoError(t, err)
	err = conversion.AddUnstructuredSpoke(reg, gv.WithKind("Pizza"), "",
		func(_ context.Context, in *unstructured.Unstructured, out *beta) error {
			toppings, _, err := unstructured.NestedString(in.Object, "spec", "toppings")
			for name := range strings.SplitSeq(toppings, "+") {
				out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
			}
			return err
		},
		func(_ context.Context, in *beta, out *unstructured.Unstructured) error {
			var names []string
			for _, t := range in.Spec.Toppings {
				names = append(names, t.Name)
			}
			if change != nil {
				change(out)
			}
			return unstructured.SetNestedField(out.Object, strings.Join(names, "+"), "spec", "toppings")
		})
	expect.NoError(t, err)
	return reg
}

// A version without a Go type converts.
func TestAddUnstructuredSpoke_NoGoType(t *testing.T) {
	reg := unstructuredRegistry(t, nil)
	old := pizza("v1alpha0", metadata, `,"spec":{"toppings":"tomato+salami"}`)
	hub := pizza("v1beta1", metadata, `,"spec":{"toppings":[{"name":"tomato"},{"name":"salami"}]}`)
	spoke := pizza("v1alpha1", metadata, `,"spec":{"toppings":["tomato","salami"]}`)
	gv, _ := schema.ParseGroupVersion(oldPizza)
	for _, c := range []struct {
		from, want string
		to         schema.GroupVersion
	}{
		{old, hub, v1beta1.GroupVersion},
		{hub, old, gv},
		{old, spoke, schema.GroupVersion{Group: gv.Group, Version: "v1alpha1"}},
		{spoke, old, gv},
	} {
		if diff := cmp.Diff(c.want, convert(t, reg, c.from, c.to)); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", c.to, diff)
		}
	}
}

// An unstructured function may change labels, and no other metadata.
func TestAddUnstructuredSpoke_Metadata(t *testing.T) {
	gv, _ := schema.ParseGroupVersion(oldPizza)
	hub := pizza("v1beta1", `{"name":"x","uid":"u"}`, "")
	reg := unstructuredRegistry(t, func(out *unstructured.Unstructured) { out.SetLabels(map[string]string{"old": "yes"}) })
	if diff := cmp.Diff(pizza("v1alpha0", `{"name":"x","uid":"u","labels":{"old":"yes"}}`, `,"spec":{"toppings":""}`), convert(t, reg, hub, gv)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, change := range map[string]func(*unstructured.Unstructured){
		"changed metadata.name, metadata.uid":                      func(u *unstructured.Unstructured) { u.SetName("y"); u.SetUID("") },
		"changed metadata.generation":                              func(u *unstructured.Unstructured) { u.SetGeneration(7) },
		"removed metadata":                                         func(u *unstructured.Unstructured) { delete(u.Object, "metadata") },
		"returned invalid metadata: cannot restore map from slice": func(u *unstructured.Unstructured) { u.Object["metadata"].(map[string]any)["labels"] = []any{} },
		"returned invalid metadata: cannot convert int to string": func(u *unstructured.Unstructured) {
			u.Object["metadata"].(map[string]any)["annotations"] = map[string]any{"a": 1}
		},
	} {
		_, err := unstructuredRegistry(t, change).Convert(t.Context(), []byte(hub), gv)
		expect.ErrorContains(t, err, want)
	}
}

// Integers of unstructured objects stay exact.
func TestAddUnstructuredSpoke_ExactIntegers(t *testing.T) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	pass := func(_ context.Context, in, out *unstructured.Unstructured) error {
		out.Object["spec"] = in.Object["spec"]
		return nil
	}
	expect.NoError(t, conversion.AddUnstructuredSpoke(reg, thingVersion("v1").WithKind("Thing"), "v2", pass, pass))
	got := convert(t, reg, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},"spec":{"big":9007199254740993,"f":1.5,"n":null,"e":[],"s":"<&>"}}`, thingVersion("v2"))
	if diff := cmp.Diff(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{},"spec":{"big":9007199254740993,"e":[],"f":1.5,"n":null,"s":"<&>"}}`, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An unstructured spoke that cannot be is refused.
func TestAddUnstructuredSpoke_Impossible(t *testing.T) {
	gvk := v1beta1.GroupVersion.WithKind("Pizza")
	gvk.Version = "v0"
	toBeta := func(context.Context, *unstructured.Unstructured, *beta) error { return nil }
	fromBeta := func(context.Context, *beta, *unstructured.Unstructured) error { return nil }
	pass := func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error { return nil }
	for want, add := range map[string]func(*conversion.Registry) error{
		"has no version or no kind": func(r *conversion.Registry) error {
			return conversion.AddUnstructuredSpoke(r, schema.GroupVersionKind{Kind: "Pizza"}, "", toBeta, fromBeta)
		},
		"is unstructured, and needs a version": func(r *conversion.Registry) error {
			return conversion.AddUnstructuredSpoke(r, gvk, "", pass, pass)
		},
		"and not version v7": func(r *conversion.Registry) error {
			return conversion.AddUnstructuredSpoke(r, gvk, "v7", toBeta, fromBeta)
		},
		"are not two versions of one kind": func(r *conversion.Registry) error {
			return conversion.AddUnstructuredSpoke(r, schema.GroupVersionKind{Group: gvk.Group, Version: "v0", Kind: "Calzone"}, "", toBeta, fromBeta)
		},
		"needs both functions": func(r *conversion.Registry) error {
			return conversion.AddUnstructuredSpoke(r, gvk, "", toBeta, nil)
		},
	} {
		if err := add(conversion.NewRegistry(pizzaScheme(t))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

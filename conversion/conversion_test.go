package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

type (
	alpha = v1alpha1.Pizza
	beta  = v1beta1.Pizza

	toHub   = func(ctx context.Context, in *alpha, out *beta) error
	fromHub = func(ctx context.Context, in *beta, out *alpha) error
)

// copyToHub and copyFromHub are the simplest right pair: one portion a topping.
func copyToHub(_ context.Context, in *alpha, out *beta) error {
	for _, name := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	out.Status.Cost = in.Status.Cost
	return nil
}

func copyFromHub(_ context.Context, in *beta, out *alpha) error {
	for _, t := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, t.Name)
	}
	out.Status.Cost = in.Status.Cost
	return nil
}

func pizzaScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
	)
	expect.NoError(t, err)
	return s
}

// registry has the given functions; nil stands for the simple pair.
func registry(t testing.TB, to toHub, from fromHub) *conversion.Registry {
	t.Helper()
	if to == nil {
		to = copyToHub
	}
	if from == nil {
		from = copyFromHub
	}
	reg := conversion.NewRegistry(pizzaScheme(t))
	expect.NoError(t, conversion.AddSpoke(reg, to, from))
	return reg
}

// metadata has everything that a naive conversion changes: odd spacing, escapes,
// an unknown member, a null, a fraction of a second, big managedFields.
const metadata = `{ "name" : "m\u0061rgherita","namespace":"default", "uid":"b9","resourceVersion":"9007199254740993",
 "generation":3,"creationTimestamp":null,"deletionGracePeriodSeconds":0,"labels":{"b":"2", "a":"1"},
 "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":1}\n"},"finalizers":[],"future":{"x":[1.0]},
 "ownerReferences":[{"apiVersion":"v1","kind":"Menu","name":"m","uid":"u","blockOwnerDeletion":false}],
 "managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"restaurant.programming-kubernetes.info/v1beta1","time":"2026-11-21T03:15:10Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"name\":\"tomato\"}":{}}}}]}`

func pizza(version, metadata, rest string) string {
	text := `{"apiVersion":"restaurant.programming-kubernetes.info/` + version + `","kind":"Pizza"`
	if metadata != "" {
		text += `,"metadata":` + metadata
	}
	return text + rest + `}`
}

func convert(t testing.TB, reg *conversion.Registry, object string, to schema.GroupVersion) string {
	t.Helper()
	out, err := reg.Convert(t.Context(), []byte(object), to)
	expect.NoError(t, err)
	return string(out)
}

// Only the body changes, and metadata keeps its text.
func TestConvert_MetadataKeepsItsText(t *testing.T) {
	reg := registry(t, nil, nil)
	spoke := pizza("v1alpha1", metadata, `,"spec":{"toppings":["tomato","mozzarella"]},"status":{"cost":1.5}`)
	hub := pizza("v1beta1", metadata, `,"spec":{"toppings":[{"name":"tomato"},{"name":"mozzarella"}]},"status":{"cost":1.5}`)
	if diff := cmp.Diff(hub, convert(t, reg, spoke, v1beta1.GroupVersion)); diff != "" {
		t.Errorf("to the hub (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(spoke, convert(t, reg, hub, v1alpha1.GroupVersion)); diff != "" {
		t.Errorf("from the hub (-want +got):\n%s", diff)
	}
}

// An object in the desired version comes back as it is.
func TestConvert_SameVersion(t *testing.T) {
	reg := registry(t, nil, nil)
	object := []byte(` {"kind":"Pizza" , "apiVersion":"restaurant.programming-kubernetes.info/v1beta1","spec":{"unknown":1.0}} `)
	out, err := reg.Convert(t.Context(), object, v1beta1.GroupVersion)
	if err != nil || string(out) != strings.TrimSpace(string(object)) {
		t.Fatalf("got %s, %v", out, err)
	}
	out[0] = 'x'
	if object[1] != '{' {
		t.Error("the result shares memory with the source")
	}
}

func TestConvert_PartialObjects(t *testing.T) {
	reg := registry(t, nil, nil)
	for _, c := range []struct{ in, want string }{
		{pizza("v1alpha1", "", ""), pizza("v1beta1", "{}", "")},
		{pizza("v1alpha1", "null", ""), pizza("v1beta1", "{}", "")},
		{pizza("v1alpha1", `{"name":"x"}`, ""), pizza("v1beta1", `{"name":"x"}`, "")},
		{pizza("v1alpha1", `{"name":"x"}`, `,"spec":null,"status":null`), pizza("v1beta1", `{"name":"x"}`, "")},
		{pizza("v1alpha1", `{"managedFields":[]}`, `,"status":{"cost":0}`), pizza("v1beta1", `{"managedFields":[]}`, `,"status":{"cost":0}`)},
	} {
		if diff := cmp.Diff(c.want, convert(t, reg, c.in, v1beta1.GroupVersion)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

// Of duplicate metadata, the last counts.
func TestConvert_DuplicateMetadata(t *testing.T) {
	reg := registry(t, func(_ context.Context, in *alpha, _ *beta) error {
		if in.Name != "b" || in.UID != "" || len(in.Labels) != 0 {
			t.Errorf("the function sees %+v", in.ObjectMeta)
		}
		return nil
	}, nil)
	got := convert(t, reg, pizza("v1alpha1", `{"name":"a","uid":"u","labels":{"l":"1"},"finalizers":["f"]}`, `,"metadata":{"name":"b"}`), v1beta1.GroupVersion)
	if diff := cmp.Diff(pizza("v1beta1", `{"name":"b"}`, ""), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The API server reads a custom object as a map.
func TestConvert_MemberThereTwice(t *testing.T) {
	var seen *alpha
	reg := registry(t, func(ctx context.Context, in *alpha, out *beta) error {
		seen = in.DeepCopy()
		return copyToHub(ctx, in, out)
	}, nil)
	read := func(text string) map[string]any {
		u := &unstructured.Unstructured{}
		expect.NoError(t, u.UnmarshalJSON([]byte(text)))
		return u.Object
	}
	for _, object := range []string{
		pizza("v1alpha1", `{"name":"x","labels":{"a":"1"},"labels":{"b":"2"}}`, ``),
		pizza("v1alpha1", `{"name":"x","labels":{"a":"1","b":"0"},"uid":"u","labels":null}`, ``),
		pizza("v1alpha1", `{"name":"x","annotations":5,"annotations":{"a":"1"}}`, ``),
		pizza("v1alpha1", `{"name":7,"generation":1.5,"name":"x","generation":2}`, ``),
		pizza("v1alpha1", `{"name":"x","uid":"u","n\u0061me":"y","uid":null}`, ``),
		pizza("v1alpha1", `{"name":"x","creationTimestamp":"2026","creationTimestamp":"2026-11-21T03:15:10Z"}`, ``),
		pizza("v1alpha1", `{"name":"x","finalizers":["a/b","c/d"],"finalizers":["e/f"]}`, ``),
		pizza("v1alpha1", `{"name":"x","ownerReferences":[{"name":"a","uid":"u"}],"ownerReferences":[{"name":"b"}]}`, ``),
		pizza("v1alpha1", `{"name":"x","deletionTimestamp":"2026-11-21T03:15:10Z","deletionTimestamp":null}`, ``),
		pizza("v1alpha1", `{"name":"x"}`, `,"spec":{"toppings":["tomato"]},"spec":{}`),
		pizza("v1alpha1", `{"name":"x"}`, `,"spec":{"toppings":["tomato"],"toppings":null}`),
		pizza("v1alpha1", `{"name":"x"}`, `,"spec":7,"spec":{"toppings":["tomato"]},"status":{"cost":1,"cost":null}`),
	} {
		converted, err := reg.Convert(t.Context(), []byte(object), v1beta1.GroupVersion)
		if err != nil {
			t.Error(err)
			continue
		}
		got := read(string(converted))
		gotSeen := seen
		once, err := json.Marshal(read(object))
		expect.NoError(t, err)
		want := read(convert(t, reg, string(once), v1beta1.GroupVersion))
		if diff := cmp.Diff(want, got) + cmp.Diff(seen, gotSeen); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
}

// A function may change labels and annotations.
func TestFunction_ChangesLabelsAndAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*beta)
		want   string
	}{
		"nothing":            {func(*beta) {}, `{"name":"x", "labels":{"b":"2", "a":"1"},"uid":"u"}`},
		"a label":            {func(p *beta) { p.Labels["c"] = "3" }, `{"name":"x","labels":{"a":"1","b":"2","c":"3"},"uid":"u"}`},
		"all labels removed": {func(p *beta) { clear(p.Labels) }, `{"name":"x","uid":"u"}`},
		"an annotation": {func(p *beta) { p.Annotations = map[string]string{"k\"": "v"} },
			`{"name":"x","labels":{"b":"2", "a":"1"},"uid":"u","annotations":{"k\"":"v"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registry(t, func(_ context.Context, _ *alpha, out *beta) error { c.change(out); return nil }, nil)
			got := convert(t, reg, pizza("v1alpha1", `{"name":"x", "labels":{"b":"2", "a":"1"},"uid":"u"}`, ""), v1beta1.GroupVersion)
			if diff := cmp.Diff(pizza("v1beta1", c.want, ""), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A function that changes other metadata fails, and the field is named.
func TestFunction_ChangesOtherMetadata(t *testing.T) {
	for want, change := range map[string]func(*metav1.ObjectMeta){
		"metadata.name":                    func(m *metav1.ObjectMeta) { m.Name = "other" },
		"metadata.uid":                     func(m *metav1.ObjectMeta) { m.UID = "" },
		"metadata.finalizers":              func(m *metav1.ObjectMeta) { m.Finalizers = append(m.Finalizers, "mine") },
		"metadata.managedFields":           func(m *metav1.ObjectMeta) { m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}} },
		"metadata.ownerReferences":         func(m *metav1.ObjectMeta) { m.OwnerReferences = nil },
		"metadata.namespace, metadata.uid": func(m *metav1.ObjectMeta) { m.Namespace, m.UID = "", "" },
	} {
		reg := registry(t, func(_ context.Context, _ *alpha, out *beta) error { change(&out.ObjectMeta); return nil }, nil)
		_, err := reg.Convert(t.Context(), []byte(pizza("v1alpha1", metadata, "")), v1beta1.GroupVersion)
		if err == nil || !strings.Contains(err.Error(), "changed "+want+": only labels and annotations may be changed") {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

// The function may copy type and metadata, as books teach.
func TestFunction_CopiesTypeAndMetadata(t *testing.T) {
	reg := registry(t, func(ctx context.Context, in *alpha, out *beta) error {
		out.TypeMeta, out.ObjectMeta = in.TypeMeta, in.ObjectMeta
		return copyToHub(ctx, in, out)
	}, nil)
	got := convert(t, reg, pizza("v1alpha1", metadata, `,"spec":{"toppings":["tomato"]}`), v1beta1.GroupVersion)
	if diff := cmp.Diff(pizza("v1beta1", metadata, `,"spec":{"toppings":[{"name":"tomato"}]}`), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFunction_SeesVersionsAndMetadata(t *testing.T) {
	reg := registry(t, func(_ context.Context, in *alpha, out *beta) error {
		if in.APIVersion != v1alpha1.GroupVersion.String() || out.APIVersion != v1beta1.GroupVersion.String() || in.Kind != "Pizza" || out.Kind != "Pizza" {
			t.Errorf("the types are %v and %v", in.TypeMeta, out.TypeMeta)
		}
		if diff := cmp.Diff(in.ObjectMeta, out.ObjectMeta); diff != "" {
			t.Errorf("the metadata differs (-in +out):\n%s", diff)
		}
		if in.Name != "margherita" || in.Labels["a"] != "1" || in.ManagedFields != nil {
			t.Errorf("the metadata is %+v", in.ObjectMeta)
		}
		out.Labels["only"] = "out"
		if _, leaked := in.Labels["only"]; leaked {
			t.Error("a label of out appeared in in")
		}
		return nil
	}, nil)
	convert(t, reg, pizza("v1alpha1", metadata, ""), v1beta1.GroupVersion)
}

// An error names the object, the versions and the reason.
func TestConvert_ErrorText(t *testing.T) {
	fail := func(context.Context, *alpha, *beta) error { return errors.New("out of flour") }
	crash := func(context.Context, *alpha, *beta) error { panic("dough everywhere") }
	const versions = "from restaurant.programming-kubernetes.info/v1alpha1 to restaurant.programming-kubernetes.info/v1beta1: "
	for name, c := range map[string]struct {
		to     toHub
		object string
		target schema.GroupVersion
		want   string
	}{
		"an error":           {to: fail, object: pizza("v1alpha1", `{"name":"x","namespace":"y"}`, ""), want: "cannot convert Pizza y/x " + versions + "out of flour"},
		"a panic":            {to: crash, object: pizza("v1alpha1", `{"name":"x"}`, ""), want: "cannot convert Pizza x " + versions + "panic: dough everywhere"},
		"no name":            {to: fail, object: pizza("v1alpha1", "", ""), want: "cannot convert Pizza " + versions + "out of flour"},
		"a wrong type":       {object: pizza("v1alpha1", `{"name":"x"}`, `,"spec":{"toppings":"tomato"}`), want: "cannot convert Pizza x " + versions + "json: cannot unmarshal string into Go struct field PizzaSpec.spec.toppings of type []string"},
		"no JSON":            {object: `{"kind":"Pizza",`, want: "cannot convert Pizza to restaurant.programming-kubernetes.info/v1beta1: not a JSON object: "},
		"no object":          {object: `7`, want: "cannot convert object to restaurant.programming-kubernetes.info/v1beta1: not a JSON object: expected object, got number"},
		"no kind":            {object: `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1"}`, want: "apiVersion and kind are required"},
		"a bad apiVersion":   {object: `{"apiVersion":"a/b/c","kind":"Pizza"}`, want: "apiVersion: unexpected GroupVersion string: a/b/c"},
		"no object metadata": {object: pizza("v1alpha1", `"x"`, ""), want: "cannot convert Pizza to restaurant.programming-kubernetes.info/v1beta1: metadata is not a JSON object"},
		"an unknown kind":    {object: strings.Replace(pizza("v1alpha1", "", ""), "Pizza", "Calzone", 1), want: "no conversions of kind Calzone.restaurant.programming-kubernetes.info are registered"},
		"an unknown source":  {object: pizza("v1", "", ""), want: "version v1 of kind Pizza.restaurant.programming-kubernetes.info is not registered"},
		"an unknown target":  {object: pizza("v1beta1", "", ""), target: schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: "v2"}, want: "version v2 of kind Pizza.restaurant.programming-kubernetes.info is not registered"},
		"another group":      {object: pizza("v1beta1", "", ""), target: schema.GroupVersion{Group: "other", Version: "v1alpha1"}, want: "a conversion cannot change the group to other"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.target.Empty() {
				c.target = v1beta1.GroupVersion
			}
			out, err := registry(t, c.to, nil).Convert(t.Context(), []byte(c.object), c.target)
			if out != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %s and error\n%v, want\n%s", out, err, c.want)
			}
		})
	}
}

func TestConvert_SourceUnchanged(t *testing.T) {
	reg := registry(t, nil, nil)
	object := pizza("v1alpha1", metadata, `,"spec":{"toppings":["tomato"]}`)
	source := []byte(object)
	if _, err := reg.Convert(t.Context(), source, v1beta1.GroupVersion); err != nil {
		t.Fatal(err)
	}
	if string(source) != object {
		t.Errorf("the source became %s", source)
	}
}

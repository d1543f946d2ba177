package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// menu has fields of many types.
type menu struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Inlined          `json:",inline"`
	Ovens             map[string]*oven `json:"ovens,omitempty"`
	Since             metav1.Time      `json:"since"`
	Seats             int              `json:"seats"`
	Named             map[named]named  `json:"named"`
	Raw               any              `json:"raw"`
	Lists             [][]named        `json:"lists"`
	Hidden            string           `json:"-"`
	Untagged          string
	Free              map[string]string `json:"free"`
}

type named string

type Inlined struct {
	Chef *string `json:"chef"`
}

type oven struct {
	Fuel struct {
		Ref struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"secretRef"`
	} `json:"fuel"`
}

func (*menu) DeepCopyObject() runtime.Object { panic("a reference must not copy") }

// found is a reference as text.
type found struct{ Path, Namespace, Name string }

func find[T runtime.Object](t *testing.T, obj T, fields ...reference.Field) (all []found) {
	t.Helper()
	refs, err := reference.Fields[T](fields...)
	expect.NoError(t, err)
	for _, ref := range refs(obj) {
		all = append(all, found{ref.Path.String(), ref.Namespace, ref.Name})
	}
	return all
}

// Fields of a Go type are found by their JSON names.
func TestFields_GoType(t *testing.T) {
	m := &menu{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"example.com/menu": "summer"}},
		Inlined:    &Inlined{Chef: new("ada")},
		Ovens:      map[string]*oven{"b": {}, "a": {}, "none": nil, "unlit": {}},
		Named:      map[named]named{"x": "y"},
		Lists:      [][]named{{"a"}, {}, {"b", "c"}},
		Untagged:   "u",
		Free:       map[string]string{"house wine": "red", "b": ""},
	}
	m.Ovens["a"].Fuel.Ref.Name = "gas"
	m.Ovens["b"].Fuel.Ref.Name, m.Ovens["b"].Fuel.Ref.Namespace = "wood", "forest"
	got := find(t, m,
		reference.Field{Name: "ovens[*].fuel.secretRef.name", Namespace: "ovens[*].fuel.secretRef.namespace"},
		reference.Field{Name: ".chef"},
		reference.Field{Name: "metadata.annotations['example.com/menu']", Namespace: "chef"},
		reference.Field{Name: "metadata.annotations['example.com/none']"},
		reference.Field{Name: "named.x"},
		reference.Field{Name: "lists[*][*]"},
		reference.Field{Name: "Untagged"},
		reference.Field{Name: "free[*]"},
		reference.Field{Name: "free['house wine']"},
	)
	want := []found{
		{"ovens[a].fuel.secretRef.name", "", "gas"},
		{"ovens[b].fuel.secretRef.name", "forest", "wood"},
		{"chef", "", "ada"},
		{"metadata.annotations[example.com/menu]", "ada", "summer"},
		{"named[x]", "", "y"},
		{"lists[0][0]", "", "a"}, {"lists[2][0]", "", "b"}, {"lists[2][1]", "", "c"},
		{"Untagged", "", "u"},
		{"free[house wine]", "", "red"},
		{"free[house wine]", "", "red"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := find(t, &menu{}, reference.Field{Name: "chef"}, reference.Field{Name: "ovens[*].fuel.secretRef.name"}); got != nil {
		t.Errorf("an empty object has %v", got)
	}
	if got := find(t, (*menu)(nil), reference.Field{Name: "chef"}); got != nil {
		t.Errorf("no object has %v", got)
	}
}

// The paths find the same references as a typed function.
func TestFields(t *testing.T) {
	p := pizza("margherita", "tomato", "", "mozzarella")
	want := []found{{"spec.toppings[0].name", "", "tomato"}, {"spec.toppings[2].name", "", "mozzarella"}}
	if diff := cmp.Diff(want, find(t, p, reference.Field{Name: "spec.toppings[*].name"})); diff != "" {
		t.Errorf("v1beta1 (-want +got):\n%s", diff)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	expect.NoError(t, err)
	if diff := cmp.Diff(want, find(t, &unstructured.Unstructured{Object: content}, reference.Field{Name: "spec.toppings[*].name"})); diff != "" {
		t.Errorf("unstructured (-want +got):\n%s", diff)
	}
	alpha := &v1alpha1.Pizza{Spec: v1alpha1.PizzaSpec{Toppings: []string{"tomato"}}}
	if diff := cmp.Diff([]found{{"spec.toppings[0]", "", "tomato"}}, find(t, alpha, reference.Field{Name: "spec.toppings[*]"})); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
}

// An odd object contains no reference.
func TestFields_OddObject(t *testing.T) {
	fields := []reference.Field{
		{Name: "spec.refs[*].name", Namespace: "spec.refs[*].namespace"},
		{Name: "spec.refs[*]['na.me']"},
	}
	for name, spec := range map[string]any{
		"none": nil, "a string": "x", "no list": map[string]any{"refs": "x"}, "a number": map[string]any{"refs": int64(3)},
		"odd elements": map[string]any{"refs": []any{nil, "x", int64(1), map[string]any{"name": int64(3)}, map[string]any{"name": nil}, map[string]any{"name": ""}}},
	} {
		if got := find(t, &unstructured.Unstructured{Object: map[string]any{"spec": spec}}, fields...); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := find(t, &unstructured.Unstructured{}, fields...); got != nil {
		t.Errorf("empty: %v", got)
	}
	good := map[string]any{"spec": map[string]any{"refs": []any{
		map[string]any{"name": "a", "namespace": int64(3)},
		map[string]any{"na.me": "b"},
		map[string]any{"name": "c", "namespace": "other"},
	}}}
	want := []found{{"spec.refs[0].name", "", "a"}, {"spec.refs[2].name", "other", "c"}, {"spec.refs[1][na.me]", "", "b"}}
	if diff := cmp.Diff(want, find(t, &unstructured.Unstructured{Object: good}, fields...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is known of an unstructured object at startup, and a reference that is not found
// would never be checked.
func TestFields_ReportListsWithoutAsterisk(t *testing.T) {
	for path, c := range map[string]struct {
		field reference.Field
		want  string
	}{
		"a path through a list":     {reference.Field{Name: "spec.toppings.name"}, "spec.toppings: Invalid value: a list, and the path spec.toppings.name of a reference has no [*] for it"},
		"a path to a list":          {reference.Field{Name: "spec.toppings"}, "spec.toppings: Invalid value: a list, and the path spec.toppings of"},
		"a list of lists":           {reference.Field{Name: "spec.lists[*].name"}, "spec.lists[0]: Invalid value: a list"},
		"both paths through a list": {reference.Field{Name: "spec.toppings.name", Namespace: "spec.toppings.namespace"}, "spec.toppings: Invalid value: a list, and the path spec.toppings.name"},
		"a namespace in a list":     {reference.Field{Name: "spec.name", Namespace: "spec.toppings.namespace"}, "spec.toppings: Invalid value: a list, and the path spec.toppings.namespace"},
	} {
		t.Run(path, func(t *testing.T) {
			refs, err := reference.Fields[*unstructured.Unstructured](c.field)
			expect.NoError(t, err)
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{
				"toppings": []any{map[string]any{"name": "tomato"}}, "lists": []any{[]any{}}, "name": "tomato",
			}}}
			kitchen := holding(topping("tomato"))
			got, err := reference.Exists(target(t, reference.ClusterScoped(toppings), kitchen, &live{}), refs)(t.Context(), obj)
			if err != nil || len(got) == 0 || !strings.HasPrefix(got[len(got)-1].Error(), c.want) {
				t.Errorf("got %v and %v, want %s", got, err, c.want)
			}
			informer := holding()
			users := follow(t, pizzas, informer, reference.ClusterScoped(toppings), refs)
			informer.add(obj)
			expect.ErrorContains(t, users.Ready(nil), `"x" cannot be found: spec.`)
		})
	}
}

// Optional fields are optional references.
func TestFields_Optional(t *testing.T) {
	refs, err := reference.Fields[*v1beta1.Pizza](reference.Field{Name: "spec.toppings[*].name", Optional: true})
	expect.NoError(t, err)
	if got := refs(pizza("x", "a")); len(got) != 1 || !got[0].Optional {
		t.Errorf("got %v", got)
	}
}

// A path that the type does not have is a fault.
func TestFields_UnknownPath(t *testing.T) {
	for want, field := range map[string]reference.Field{
		`spec: reference_test.menu has no field "spec"`:                         {Name: "spec"},
		`hidden: reference_test.menu has no field "hidden"`:                     {Name: "hidden"},
		`-: reference_test.menu has no field "-"`:                               {Name: "-"},
		`seats: type int, expected a string`:                                    {Name: "seats"},
		`since: type v1.Time, expected a string`:                                {Name: "since"},
		`since.time: v1.Time has no fields`:                                     {Name: "since.time"},
		`raw.name: interface {} has no fields`:                                  {Name: "raw.name"},
		`seats[*]: int is not a list or map`:                                    {Name: "seats[*]"},
		`lists[*].name: []reference_test.named has no fields`:                   {Name: "lists[*].name"},
		`lists['a']: [][]reference_test.named is not a list or map`:             {Name: "lists['a']"},
		`ovens: type map[string]*reference_test.oven, expected a string`:        {Name: "ovens"},
		`"": expected a field name without ], * and quotes`:                     {},
		`"a..b": expected a field name without ], * and quotes`:                 {Name: "a..b"},
		`"[*].a": expected a field name without ], * and quotes`:                {Name: "[*].a"},
		`"a]": expected a field name without ], * and quotes`:                   {Name: "a]"},
		`"lists[0]": expected [*] or ['…'], followed by a dot or a bracket`:     {Name: "lists[0]"},
		`"lists[*]name": expected [*] or ['…'], followed by a dot or a bracket`: {Name: "lists[*]name"},
		`"free['a": expected a key in the form ['…']`:                           {Name: "free['a"},
		`"free['']": expected a key in the form ['…']`:                          {Name: "free['']"},
		`chief: reference_test.menu has no field "chief"`:                       {Name: "chef", Namespace: "chief"},
		`free[*]: expected the same path as chef up to the last [*]`:            {Name: "chef", Namespace: "free[*]"},
		`free[*]: expected the same path as named[*] up to the last [*]`:        {Name: "named[*]", Namespace: "free[*]"},
	} {
		_, err := reference.Fields[*menu](reference.Field{Name: "chef"}, field)
		if want := "reference: the fields of *reference_test.menu: " + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := reference.Fields[*corev1.Pod](reference.Field{Name: "spec.volumes[*].secret.name"}, reference.Field{Name: "x"})
	if want := "reference: the fields of *v1.Pod: spec.volumes[*].secret.name: v1.SecretVolumeSource has no field \"name\"\nx: v1.Pod has no field \"x\""; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := reference.Fields[*menu](); err == nil || err.Error() != "reference: the fields of *reference_test.menu: no fields" {
		t.Errorf("got %v", err)
	}
	if _, err := reference.Fields[runtime.Object](reference.Field{Name: "x"}); err == nil || err.Error() != "reference: the fields of runtime.Object: not a pointer to a struct" {
		t.Errorf("got %v", err)
	}
}

// The well-known references of a Pod are found in it.
func TestFields_Pod(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		ServiceAccountName: "cook",
		ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
		Volumes:            []corev1.Volume{{Name: "no"}, {Name: "yes", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}}},
		Containers:         []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}}},
	}}
	want := []found{
		{"spec.volumes[1].secret.secretName", "", "tls"},
		{"spec.imagePullSecrets[0].name", "", "registry"},
		{"spec.containers[0].envFrom[0].secretRef.name", "", "env"},
	}
	if diff := cmp.Diff(want, find(t, pod,
		reference.Field{Name: "spec.volumes[*].secret.secretName"},
		reference.Field{Name: "spec.imagePullSecrets[*].name"},
		reference.Field{Name: "spec.containers[*].envFrom[*].secretRef.name"},
	)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A key with a dot or a slash needs brackets.
func TestFields_Brackets(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.annotations.example.com/menu":    `reference: the fields of *unstructured.Unstructured: "metadata.annotations.example.com/menu": a key with a slash needs the form ['…']`,
		"metadata.labels.example.com":              "reference: the fields of *unstructured.Unstructured: metadata.labels.example.com: the values of labels are strings; a key with a dot needs the form ['…']",
		"metadata.annotations.menu":                "",
		"metadata.annotations['example.com/menu']": "",
	} {
		_, err := reference.Fields[*unstructured.Unstructured](reference.Field{Name: path})
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// label labels an object of any form.
func label[T metav1.Object](_ context.Context, obj T) error {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["baked"] = "yes"
	obj.SetLabels(labels)
	return nil
}

// An object of each form can be changed, and keeps the fields that its form does not know.
func TestForms_UnknownFields(t *testing.T) {
	const managed = `"managedFields":[{"manager":"x","fieldsV1":{"f:spec":{}}}]`
	object := strings.Replace(pizza("v1beta1", `,"spec":{"toppings":[{"name":"a","future":9007199254740993}],"exact":1.50}`), `{"name"`, `{`+managed+`,"name"`, 1)
	want := strings.Replace(object, managed, `"labels":{"baked":"yes"},`+managed, 1)
	for form, option := range map[string]admission.Option{
		"a Go type":    admission.Mutate(label[*v1beta1.Pizza]),
		"unstructured": admission.Mutate(label[*unstructured.Unstructured]),
		"metadata":     admission.Mutate(label[*metav1.PartialObjectMetadata]),
	} {
		t.Run(form, func(t *testing.T) {
			response := ask(t, admission.NewHandler(pizzaScheme(t), option), request{object: object})
			if diff := cmp.Diff(`[{"op":"add","path":"/metadata/labels","value":{"baked":"yes"}}]`, string(response.Patch)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// The library writes the members of what it changed in the order of names.
			if diff := cmp.Diff(want, patched(t, object, response)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Metadata and unstructured objects are of every kind, without a scheme that knows it.
func TestForms_EveryKind(t *testing.T) {
	var seen []string
	h := admission.NewHandler(runtime.NewScheme(), // which knows nothing
		admission.Mutate(func(ctx context.Context, m *metav1.PartialObjectMetadata) error {
			seen = append(seen, fmt.Sprint(m.GroupVersionKind().Kind, " ", m.Name, " ", len(m.ManagedFields)))
			return label(ctx, m)
		}),
		admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
			_, managed := u.Object["metadata"].(map[string]any)["managedFields"]
			seen = append(seen, fmt.Sprint(u.GetKind(), " ", u.GetLabels()["baked"], " ", managed))
			return nil, nil
		}),
		admission.ValidateDelete(func(_ context.Context, m *metav1.PartialObjectMetadata) (field.ErrorList, error) {
			seen = append(seen, "delete "+m.Name)
			return nil, nil
		}))
	object := `{"apiVersion":"made.up/v7","kind":"Thing","metadata":{"name":"x","managedFields":[{"manager":"y"}]},"spec":7}`
	for _, r := range []request{
		{group: "made.up", version: "v7", kind: "Thing", object: object},
		{group: "made.up", version: "v7", kind: "Thing", operation: "DELETE", old: object},
	} {
		if response := ask(t, h, r); !response.Allowed {
			t.Errorf("got %+v", response)
		}
	}
	if diff := cmp.Diff([]string{"Thing x 0", "Thing yes false", "delete x"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A function may see the old object, in any version and form.
func TestOldFrom(t *testing.T) {
	old := pizza("v1alpha1", `,"spec":{"toppings":["salami"]}`)
	var got []any
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		hub, err := admission.OldFrom[*v1beta1.Pizza](ctx)
		if err != nil {
			return err
		}
		if hub == nil {
			got = append(got, nil)
			return nil
		}
		spoke, err := admission.OldFrom[*v1alpha1.Pizza](ctx)
		if err != nil {
			return err
		}
		meta, err := admission.OldFrom[*metav1.PartialObjectMetadata](ctx)
		got = append(got, hub.Spec.Toppings[0].Name, spoke.Spec.Toppings, meta.Name)
		return err
	}))
	ask(t, h, request{version: "v1alpha1", operation: "UPDATE", object: pizza("v1alpha1", ""), old: old})
	ask(t, h, request{version: "v1alpha1", object: old})
	if diff := cmp.Diff([]any{"salami", []string{"salami"}, "margherita", nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if hub, err := admission.OldFrom[*v1beta1.Pizza](t.Context()); hub != nil || err != nil {
		t.Errorf("outside a function: %v, %v", hub, err)
	}
}

// An old object that is unstructured has the version that the function sees.
func TestOldFrom_Unstructured(t *testing.T) {
	var got []string
	see := func(ctx context.Context, u *unstructured.Unstructured) error {
		old, err := admission.OldFrom[*unstructured.Unstructured](ctx)
		got = append(got, u.GroupVersionKind().Version+" "+old.GroupVersionKind().Version)
		return err
	}
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)),
		admission.Mutate(see), admission.Mutate(see, admission.ForKind(v1beta1.GroupVersion.WithKind("Pizza"))))
	ask(t, h, request{version: "v1alpha1", operation: "UPDATE", object: pizza("v1alpha1", "")})
	if diff := cmp.Diff([]string{"v1alpha1 v1alpha1", "v1beta1 v1beta1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An old object of another kind is an error.
func TestOldFrom_AnotherKind(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		_, err := admission.OldFrom[*v1alpha1.Topping](ctx)
		return err
	}))
	got := undecided(t, h, request{operation: "UPDATE", object: pizza("v1beta1", "")})
	if want := "the request is for restaurant.programming-kubernetes.info/v1beta1, Kind=Pizza, and not for restaurant.programming-kubernetes.info/v1alpha1, Kind=Topping"; !strings.Contains(got.Message, want) {
		t.Errorf("got %s", got.Message)
	}
}

// Values that a function keeps must stay as they are when the memory of the call is used again.
func TestMutate_KeptObject(t *testing.T) {
	var kept []*v1beta1.Pizza
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
		kept = append(kept, p)
		return nil
	}))
	for i := range 50 {
		ask(t, h, request{object: pizza("v1beta1", fmt.Sprintf(`,"spec":{"toppings":[{"name":"topping-%d","quantity":%d}]}`, i, i))})
	}
	for i, p := range kept {
		if p.Name != "margherita" || p.Spec.Toppings[0].Name != fmt.Sprintf("topping-%d", i) || *p.Spec.Toppings[0].Quantity != int32(i) {
			t.Errorf("pizza %d has become %+v", i, p)
		}
	}
}

// A function can be tested without a handler.
func TestWithRequest(t *testing.T) {
	ctx := admission.WithRequest(t.Context(), &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update,
		UserInfo:  authenticationv1.UserInfo{Username: "ada"},
		OldObject: runtime.RawExtension{Raw: []byte(pizza("v1beta1", `,"spec":{"toppings":[{"name":"salami"}]}`))},
	})
	r, ok := admission.RequestFrom(ctx)
	old, err := admission.OldFrom[*v1beta1.Pizza](ctx)
	if !ok || r.UserInfo.Username != "ada" || *r.DryRun || err != nil || old.Spec.Toppings[0].Name != "salami" {
		t.Errorf("got %+v, %v, %+v, %v", r, ok, old, err)
	}
	for want, extension := range map[string]runtime.RawExtension{
		"margherita": {Object: &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{Name: "margherita"}}},
		"":           {Raw: []byte("null")},
	} {
		old, err := admission.OldFrom[*v1beta1.Pizza](admission.WithRequest(t.Context(), &admissionv1.AdmissionRequest{OldObject: extension}))
		if err != nil || (old == nil) != (want == "") || old != nil && old.Name != want {
			t.Errorf("got %+v, %v, want %q", old, err, want)
		}
	}
	admission.Warn(ctx, "hot")
	if err := admission.AuditAnnotation(ctx, "oven", "hot"); err != nil {
		t.Error(err)
	}
}

// A conversion of the old object may ask for the request, and may warn.
func TestOldFrom_ConverterUsesContext(t *testing.T) {
	warning := converter(func(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
		admission.Warn(ctx, "this version is old")
		admission.RequestFrom(ctx)
		return renamed(object, to), nil
	})
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(warning), admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
		_, err := admission.OldFrom[*v1beta1.Pizza](ctx)
		return nil, err
	}))
	if response := ask(t, h, request{version: "v1alpha1", operation: "UPDATE", object: pizza("v1alpha1", "")}); !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("got %+v", response)
	}
}

// The user who fixes a stored object is not at fault for it.
func TestConvertWith_UnconvertibleOldObject(t *testing.T) {
	stale := converter(func(_ context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
		if strings.Contains(string(object), "nails") {
			return nil, field.Invalid(field.NewPath("spec", "toppings").Index(0), "nails", "cannot be converted")
		}
		return renamed(object, to), nil
	})
	r := request{version: "v1alpha1", operation: "UPDATE", object: pizza("v1alpha1", ""), old: pizza("v1alpha1", `,"spec":{"toppings":["nails"]}`)}
	if !ask(t, admission.NewHandler(pizzaScheme(t), admission.ConvertWith(stale), admission.Validate(allow[*v1beta1.Pizza], admission.IfChanged("spec"))), r).Allowed {
		t.Error("the repair is denied")
	}
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(stale), admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza]), admission.ValidateDelete(allow[*v1beta1.Pizza]))
	for _, operation := range []string{"UPDATE", "DELETE"} {
		r.operation = operation
		if got := undecided(t, h, r); got.Code != 500 || !strings.Contains(got.Message, `the stored object: spec.toppings[0]: Invalid value: "nails"`) {
			t.Errorf("%s: got %+v", operation, got)
		}
	}
}

// deep is a type for which there is no fast decoder.
type deep struct {
	*metav1.TypeMeta  `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (d *deep) GetObjectKind() schema.ObjectKind { return d.TypeMeta }
func (d *deep) DeepCopyObject() runtime.Object   { panic("nobody copies") }

// No function sees managed fields, not even of a type without a fast decoder.
func TestValidate_ManagedFields(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deep"}, &deep{})
	h := admission.NewHandler(s, admission.Validate(func(_ context.Context, d *deep) (field.ErrorList, error) {
		if d.Name != "x" || d.ManagedFields != nil {
			t.Errorf("got %+v", d.ObjectMeta)
		}
		return nil, nil
	}))
	ask(t, h, request{group: "example.com", version: "v1", kind: "Deep", object: `{"apiVersion":"example.com/v1","kind":"Deep","metadata":{"name":"x","managedFields":[{"manager":"y"}]}}`})
}

// Of a member that is there twice, the last one counts, as where the patch is applied.
func TestForms_MemberThereTwice(t *testing.T) {
	object := strings.Replace(pizza("v1beta1", `,"spec":{"toppings":[{"name":"a"}]},"spec":{}`), `{"name"`, `{"labels":{"a":"1"},"labels":{"b":"2"},"name"`, 1)
	var seen map[string]string
	for form, option := range map[string]admission.Option{
		"a Go type": admission.Mutate(func(ctx context.Context, p *v1beta1.Pizza) error {
			if len(p.Spec.Toppings) > 0 {
				t.Errorf("the function sees the toppings %v", p.Spec.Toppings)
			}
			seen = maps.Clone(p.Labels)
			return label(ctx, p)
		}),
		"unstructured": admission.Mutate(func(ctx context.Context, u *unstructured.Unstructured) error {
			seen = u.GetLabels()
			return label(ctx, u)
		}),
		"metadata": admission.Mutate(func(ctx context.Context, m *metav1.PartialObjectMetadata) error {
			seen = maps.Clone(m.Labels)
			return label(ctx, m)
		}),
	} {
		t.Run(form, func(t *testing.T) {
			response := ask(t, admission.NewHandler(pizzaScheme(t), option), request{object: object})
			if diff := cmp.Diff(map[string]string{"b": "2"}, seen); diff != "" {
				t.Errorf("labels that the function sees (-want +got):\n%s", diff)
			}
			got := &unstructured.Unstructured{}
			expect.NoError(t, got.UnmarshalJSON([]byte(patched(t, object, response))))
			if diff := cmp.Diff(map[string]string{"b": "2", "baked": "yes"}, got.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeError_SaidOnceForAllFunctions(t *testing.T) {
	validate := admission.Validate(allow[*v1beta1.Pizza])
	update := admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza])
	h := admission.NewHandler(pizzaScheme(t), validate, update, validate, update)
	changed := admission.Validate(allow[*v1beta1.Pizza], admission.IfChanged("spec.toppings"))
	converting := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(failing(errors.New("pod cannot be decoded"))), changed, validate, changed)
	misfit := pizza("v1beta1", `,"spec":[]`)
	for name, message := range map[string]string{
		"of the object":     ask(t, h, request{operation: "UPDATE", object: misfit}).Result.Message,
		"of the stored one": undecided(t, h, request{operation: "UPDATE", object: pizza("v1beta1", ""), old: misfit}).Message,
		"of a conversion":   undecided(t, converting, request{version: "v1alpha1", operation: "UPDATE", object: pizza("v1alpha1", "")}).Message,
	} {
		if n := strings.Count(message, "cannot be decoded"); n != 1 {
			t.Errorf("%s: it is said %d times: %s", name, n, message)
		}
	}
}

// A struct that becomes zero, which omitzero leaves out, keeps the fields that its form does not know.
func TestForms_ZeroStruct(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
		p.Spec = v1beta1.PizzaSpec{}
		return nil
	}))
	for spec, want := range map[string]string{
		`,"spec":{"toppings":[{"name":"salami"}]}`:            ``,
		`,"spec":{"future":1,"toppings":[{"name":"salami"}]}`: `,"spec":{"future":1}`,
	} {
		object := pizza("v1beta1", spec)
		if got, want := patched(t, object, ask(t, h, request{object: object})), pizza("v1beta1", want); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

type car struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Wheels []string `json:"wheels,omitzero"`
		Color  string   `json:"color,omitzero"`
	} `json:"spec,omitzero"`
}

type alphaCar struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Wheels []string `json:"wheels,omitzero"`
	} `json:"spec,omitzero"`
}

func (c *car) DeepCopyObject() runtime.Object      { o := *c; return &o }
func (c *alphaCar) DeepCopyObject() runtime.Object { o := *c; return &o }

// So it does when the function is for a version that does not know them.
func TestConvertWith_ZeroStruct(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Car"}, &car{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Car"}, &alphaCar{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg,
		func(_ context.Context, in *alphaCar, out *car) error { out.Spec.Wheels = in.Spec.Wheels; return nil },
		func(_ context.Context, in *car, out *alphaCar) error { out.Spec.Wheels = in.Spec.Wheels; return nil }))
	h := admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(func(_ context.Context, c *alphaCar) error {
		c.Spec.Wheels = nil
		return nil
	}))
	const object = `{"apiVersion":"example.com/v1","kind":"Car","metadata":{"name":"a"},"spec":{"color":"red","wheels":["w"]}}`
	want := strings.Replace(object, `,"wheels":["w"]`, "", 1)
	if got := patched(t, object, ask(t, h, request{group: "example.com", version: "v1", kind: "Car", object: object})); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package admission_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// losslessRegistry returns a registry whose spoke keeps in an annotation what it cannot express.
func losslessRegistry(t *testing.T) *conversion.Registry {
	reg := registry(t)
	expect.NoError(t, conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza")))
	return reg
}

// annotated returns a pizza of the spoke with that text in the annotation.
func annotated(text, topping string) string {
	return strings.Replace(pizza("v1alpha1", `,"spec":{"toppings":["`+topping+`"]}`), `"namespace"`,
		`"annotations":{"a":"b","`+lossless.Annotation+`":"`+text+`"},"namespace"`, 1)
}

// Else a user could have any object stored where the failurePolicy is Ignore.
func TestUnreadableAnnotation_Denies(t *testing.T) {
	for name, option := range map[string]admission.Option{
		"Mutate":         admission.Mutate(addTomato),
		"Validate":       admission.Validate(allow[*v1beta1.Pizza]),
		"IfChanged":      admission.Validate(allow[*v1beta1.Pizza], admission.IfChanged("spec")),
		"ValidateUpdate": admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza]),
	} {
		h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(losslessRegistry(t)), option)
		got := ask(t, h, request{version: "v1alpha1", operation: "UPDATE", object: annotated("{", "salami")})
		if got.Allowed || got.Result.Code != 422 || got.Result.Details.Causes[0].Field != "metadata.annotations["+lossless.Annotation+"]" {
			t.Errorf("%s: got %+v", name, got.Result)
		}
	}
}

// An object that does not fit into the annotation is refused at the write, and not at the read.
func TestTooLargeAnnotation_Denies(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(losslessRegistry(t)), admission.Validate(allow[*v1alpha1.Pizza]))
	for size, want := range map[int]bool{1 << 20: true, 2 << 20: false} {
		object := pizza("v1beta1", `,"spec":{"future":"`+strings.Repeat("x", size)+`"}`)
		got := ask(t, h, request{version: "v1beta1", operation: "CREATE", object: object})
		if got.Allowed != want {
			t.Errorf("%d bytes: %+v", size, got.Result)
		}
		if !want && (got.Result.Code != 422 || got.Result.Details.Causes[0].Field != "metadata.annotations["+lossless.Annotation+"]") {
			t.Errorf("got %+v", got.Result)
		}
	}
}

func TestUnreadableAnnotation_CanBeRemoved(t *testing.T) {
	check := func(ctx context.Context, _, old *v1beta1.Pizza) (field.ErrorList, error) {
		again, err := admission.OldFrom[*v1beta1.Pizza](ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range []*v1beta1.Pizza{old, again} {
			if len(p.Annotations) != 1 || p.Annotations["a"] != "b" || p.Spec.Toppings[0].Name != "salami" {
				t.Errorf("the old object is %+v", p)
			}
		}
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), "seen")}, nil
	}
	see := func(ctx context.Context, old *v1beta1.Pizza) (field.ErrorList, error) { return check(ctx, nil, old) }
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(losslessRegistry(t)),
		admission.ValidateUpdate(check, admission.IfChanged("spec")), admission.ValidateDelete(see))
	for operation, object := range map[string]string{"UPDATE": pizza("v1alpha1", `,"spec":{"toppings":["ham"]}`), "DELETE": ""} {
		r := request{version: "v1alpha1", operation: operation, object: object, old: annotated("{", "salami")}
		if got := ask(t, h, r); got.Result == nil || !strings.HasSuffix(got.Result.Message, "spec: Forbidden: seen") {
			t.Errorf("%s: got %+v", operation, got)
		}
	}
}

// The faults in the rest of the stored object are still not known.
func TestUnreadableAnnotation_HidesNoOtherFault(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(losslessRegistry(t)), admission.ValidateDelete(allow[*v1beta1.Pizza]))
	if got := undecided(t, h, request{version: "v1alpha1", operation: "DELETE", old: annotated("{", "nails")}); !strings.Contains(got.Message, "cannot convert nails") {
		t.Errorf("got %+v", got)
	}
}

package admission_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// warn returns the warnings of an answer.
func warn(t *testing.T, texts ...string) []string {
	t.Helper()
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		for _, text := range texts {
			admission.Warn(ctx, "%s", text)
		}
		return nil
	}))
	return ask(t, h, request{object: pizza("v1beta1", "")}).Warnings
}

// A warning contains nothing for which the API server would drop it.
func TestWarn_OddText(t *testing.T) {
	got := warn(t, "two\nlines\tand a bell\x07\u0085", "\xff", "", " \n", "twice", "twice", "mozzarella 🧀 <é>")
	if diff := cmp.Diff([]string{"two lines and a bell", "\uFFFD", "twice", "mozzarella 🧀 <é>"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Audit annotations are in the answer.
func TestAuditAnnotation(t *testing.T) {
	var wrong []string
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		for _, key := range []string{"oven", "", "a/b", "-x", strings.Repeat("x", 64)} {
			if err := admission.AuditAnnotation(ctx, key, "hot"); err != nil {
				wrong = append(wrong, key)
			}
		}
		return admission.AuditAnnotation(ctx, "oven", "300 °C")
	}))
	response := ask(t, h, request{object: pizza("v1beta1", "")})
	if diff := cmp.Diff(map[string]string{"oven": "300 °C"}, response.AuditAnnotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "a/b", "-x", strings.Repeat("x", 64)}, wrong); diff != "" {
		t.Errorf("wrong keys (-want +got):\n%s", diff)
	}
	if err := admission.AuditAnnotation(t.Context(), "oven", "cold"); err == nil {
		t.Error("the warning is lost, and there is no error")
	}
}

// isOver fails the test if the context of a function that has returned still has a request, or takes a warning or an annotation.
func isOver(t *testing.T, ctx context.Context) {
	t.Helper()
	admission.Warn(ctx, "too late")
	if err := admission.AuditAnnotation(ctx, "oven", "cold"); err == nil {
		t.Error("an audit annotation is taken")
	}
	if r, ok := admission.RequestFrom(ctx); ok {
		t.Errorf("there is a request: %+v", r)
	}
	if old, err := admission.OldFrom[*v1beta1.Pizza](ctx); old != nil || err != nil {
		t.Errorf("there is an old object: %+v, %v", old, err)
	}
}

// A function that has returned has nothing more to say. The memory of a request is used for the next one: a goroutine
// that a function has left behind must not read it.
func TestContext_AfterTheFunction(t *testing.T) {
	var kept context.Context
	h := admission.NewHandler(pizzaScheme(t),
		admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
			kept = ctx
			admission.RequestFrom(ctx)
			return nil, nil
		}),
		admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
			isOver(t, kept)
			return nil, nil
		}))
	if got := ask(t, h, request{operation: "UPDATE", object: pizza("v1beta1", "")}); got.Warnings != nil || got.AuditAnnotations != nil {
		t.Errorf("got %+v", got)
	}
	isOver(t, kept) // after the request, too
}

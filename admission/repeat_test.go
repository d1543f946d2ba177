package admission_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// cannot converts nothing.
type cannot struct{}

func (cannot) Convert(context.Context, []byte, schema.GroupVersion) ([]byte, error) {
	return nil, errors.New("pod cannot be decoded")
}

func (cannot) Versions(schema.GroupKind) []string { return []string{"v1alpha1", "v1beta1"} }

func TestDecodeError_SaidOnceForAllFunctions(t *testing.T) {
	validate := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) { return nil, nil })
	update := admission.ValidateUpdate(func(context.Context, *v1beta1.Pizza, *v1beta1.Pizza) (field.ErrorList, error) { return nil, nil })
	h := admission.NewHandler(pizzaScheme(t), validate, update, validate, update)
	changed := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) { return nil, nil }, admission.IfChanged("spec.toppings"))
	converting := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(cannot{}), changed, validate, changed)
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

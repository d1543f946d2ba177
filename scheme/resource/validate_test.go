package resource

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

func accept[T Object](context.Context, T, T) field.ErrorList { return nil }

// An object that one version refuses must not be written in another version.
func TestNew_ValidateForEachVersion(t *testing.T) {
	const missing = "resource: pizzas: version %s of Pizza has no Validate[%s], but %s has one: expected a function for each served version or for none"
	alpha, beta := Validate(accept[*v1alpha1.Pizza]), Validate(accept[*v1beta1.Pizza])
	for name, c := range map[string]struct {
		opts []Option
		want string
	}{
		"none":         {nil, ""},
		"each version": {[]Option{alpha, beta}, ""},
		"the hub":      {[]Option{beta}, fmt.Sprintf(missing, "v1alpha1", "*v1alpha1.Pizza", "*v1beta1.Pizza")},
		"the spoke":    {[]Option{alpha}, fmt.Sprintf(missing, "v1beta1", "*v1beta1.Pizza", "*v1alpha1.Pizza")},
	} {
		got := ""
		if _, err := New[*v1beta1.Pizza](served(t), "pizzas", c.opts...); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, the hub is served (-want +got):\n%s", name, diff)
		}
		got = ""
		if _, err := New[*ownPizza](pizzas(), "pizzas", c.opts...); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, the hub is internal (-want +got):\n%s", name, diff)
		}
	}
	if _, err := New[*v1alpha1.Topping](served(t), "toppings", Validate(accept[*v1alpha1.Topping])); err != nil {
		t.Errorf("a kind of one version: %v", err)
	}
	// A function that validation-gen has generated counts.
	generated := served(t)
	generated.AddValidationFunc(&v1alpha1.Pizza{}, func(context.Context, operation.Operation, any, any) field.ErrorList { return nil })
	if _, err := New[*v1beta1.Pizza](generated, "pizzas", beta); err != nil {
		t.Errorf("a generated function: %v", err)
	}
}

// A function gets the object that is updated, in its own version, and nil on creation.
func TestValidate_OldObject(t *testing.T) {
	var calls []string
	record := func(version string, before bool, toppings int) field.ErrorList {
		calls = append(calls, fmt.Sprintf("%s, %d toppings, updated %t", version, toppings, before))
		return nil
	}
	_, r := servedHub(t,
		Validate(func(_ context.Context, p, old *v1alpha1.Pizza) field.ErrorList {
			if old == nil {
				return record("v1alpha1", false, len(p.Spec.Toppings))
			}
			return record("v1alpha1", true, len(old.Spec.Toppings))
		}),
		Validate(func(_ context.Context, p, old *v1beta1.Pizza) field.ErrorList {
			if old == nil {
				return record("v1beta1", false, len(p.Spec.Toppings))
			}
			return record("v1beta1", true, len(old.Spec.Toppings))
		}))
	object := func(toppings ...string) *hub[*v1beta1.Pizza] {
		p := &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		for _, name := range toppings {
			p.Spec.Toppings = append(p.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(int32(1))})
		}
		h := wrap(p)
		return &h
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		ctx := genericapirequest.WithRequestInfo(t.Context(), &genericapirequest.RequestInfo{APIGroup: v1beta1.GroupVersion.Group, APIVersion: version, Resource: "pizzas", IsResourceRequest: true})
		config := rest.DeclarativeValidationConfig{}
		r.strategy.ValidateDeclaratively(ctx, object("ham"), nil, nil, operation.Create, config)
		r.strategy.ValidateDeclaratively(ctx, object("ham"), object("ham", "basil"), nil, operation.Update, config)
	}
	want := []string{"v1alpha1, 1 toppings, updated false", "v1alpha1, 2 toppings, updated true", "v1beta1, 1 toppings, updated false", "v1beta1, 2 toppings, updated true"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/scheme/resource"
	"github.com/crdkit/crdkit/test/expect"
)

// types returns the types and conversions of package pizza.
func types(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := pizza.NewScheme()
	expect.NoError(t, err)
	reg, err := pizza.NewRegistry(s)
	expect.NoError(t, err)
	expect.NoError(t, scheme.Install(s, scheme.APIServer(), scheme.Functions(reg.AddToScheme)))
	return s
}

// definition returns the definition of pizzas, with changes of its versions v1alpha1 and v1beta1.
func definition(t *testing.T, change ...func(alpha, beta *apiextensionsv1.CustomResourceDefinitionVersion)) *schema.Definition {
	t.Helper()
	d, err := schema.Parse(pizza.Definitions()[0])
	expect.NoError(t, err)
	crd := d.CustomResourceDefinition()
	for _, f := range change {
		f(&crd.Spec.Versions[0], &crd.Spec.Versions[1])
	}
	d, err = schema.New(crd)
	expect.NoError(t, err)
	return d
}

func pizzas(t *testing.T, s *runtime.Scheme, d *schema.Definition, opts ...resource.Option) *resource.Resource {
	t.Helper()
	r, err := resource.New[*v1beta1.Pizza](s, d, opts...)
	expect.NoError(t, err)
	return r
}

func accept[T resource.Object](context.Context, T, T) field.ErrorList { return nil }

func TestNew_Errors(t *testing.T) {
	const name = "resource: pizzas.restaurant.programming-kubernetes.info: "
	preserving := definition(t).CustomResourceDefinition()
	preserving.Spec.PreserveUnknownFields = true
	for i := range preserving.Spec.Versions {
		preserving.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	}
	preserves, err := schema.New(preserving)
	expect.NoError(t, err)
	bare, err := scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}))
	expect.NoError(t, err)
	unconverted, err := pizza.NewScheme()
	expect.NoError(t, err)
	alpha, beta := resource.Validate(accept[*v1alpha1.Pizza]), resource.Validate(accept[*v1beta1.Pizza])
	create := func(s *runtime.Scheme, d *schema.Definition, opts ...resource.Option) error {
		_, err := resource.New[*v1beta1.Pizza](s, d, opts...)
		return err
	}
	_, topping := resource.New[*v1alpha1.Topping](types(t), definition(t))
	_, unknown := resource.New[*v1alpha1.Topping](bare, definition(t))
	generated := types(t)
	generated.AddValidationFunc(&v1alpha1.Pizza{}, func(context.Context, operation.Operation, any, any) field.ErrorList { return nil })
	refused := types(t)
	for want, err := range map[string]error{
		name + "the type argument of New is *v1alpha1.Topping, expected a type of Pizza.restaurant.programming-kubernetes.info": topping,
		name + "the type argument of New is *v1alpha1.Topping, expected a type of Pizza.restaurant.programming-kubernetes.info\n" +
			"type *v1alpha1.Topping is not registered in the scheme: ": unknown,
		name + "the scheme lacks version v1alpha1 of Pizza.restaurant.programming-kubernetes.info":                                                                 create(bare, definition(t)),
		name + "the scheme has no conversion between v1alpha1.Pizza and v1beta1.Pizza":                                                                             create(unconverted, definition(t)),
		name + "spec.preserveUnknownFields: Invalid value: true: expected a structural schema":                                                                     create(types(t), preserves),
		name + "the type argument of Validate is *v1alpha1.Topping, expected one of [*v1beta1.Pizza *v1alpha1.Pizza]":                                              create(types(t), definition(t), alpha, beta, resource.Validate(accept[*v1alpha1.Topping])),
		name + "Validate is given twice for *v1alpha1.Pizza":                                                                                                       create(types(t), definition(t), alpha, beta, alpha),
		name + "[*v1beta1.Pizza] have a validating function, and [*v1alpha1.Pizza] have none, expected a function of Validate for each served version or for none": create(types(t), definition(t), beta),
		name + "[*v1alpha1.Pizza] have a validating function, and [*v1beta1.Pizza] have none, expected a function of Validate for each served version or for none": create(refused, definition(t), alpha),
		"resource: no resources to install": resource.Install(nil, nil),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	expect.NoError(t, errors.Join(create(types(t), definition(t)), create(types(t), definition(t), alpha, beta)))
	expect.ErrorContains(t, create(generated, definition(t)), "[*v1alpha1.Pizza] have a validating function, and [*v1beta1.Pizza] have none, expected a function of Validate for each served version or for none")
	expect.NoError(t, create(generated, definition(t), beta)) // a function of validation-gen counts
	expect.NoError(t, create(refused, definition(t)))         // the function was not added
	unserved := definition(t, func(alpha, _ *apiextensionsv1.CustomResourceDefinitionVersion) { alpha.Served = false })
	expect.NoError(t, create(types(t), unserved, beta))
}

// The hub may be a type of the internal version. Of the metadata, conversions only decide about labels and annotations.
func TestNew_InternalHub(t *testing.T) {
	t.Parallel()
	internal := runtimeschema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: runtime.APIVersionInternal}
	s := types(t)
	s.AddKnownTypeWithName(internal.WithKind("Pizza"), &ownPizza{})
	expect.NoError(t, errors.Join(
		addConversion(s, func(in *v1alpha1.Pizza, out *ownPizza) { out.Labels, out.Names = in.Labels, in.Spec.Toppings }),
		addConversion(s, func(in *ownPizza, out *v1alpha1.Pizza) { out.Labels, out.Spec.Toppings = in.Labels, in.Names }),
		addConversion(s, func(in *v1beta1.Pizza, out *ownPizza) {
			out.Labels = in.Labels
			for _, topping := range in.Spec.Toppings {
				out.Names = append(out.Names, topping.Name)
			}
		}),
		addConversion(s, func(in *ownPizza, out *v1beta1.Pizza) {
			out.Labels = in.Labels
			for _, name := range in.Names {
				out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
			}
		})))
	r, err := resource.New[*ownPizza](s, definition(t))
	expect.NoError(t, err)
	c := newClient(t, serve(t, s, r))
	got := c.send("create v1alpha1", `{"metadata":{"name":"a","labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["e.f/g"]},"spec":{"toppings":["ham"]}}`)
	if want := `201 {"toppings":["ham"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := c.send("get v1beta1 a", ""), `200 {"toppings":[{"name":"ham","quantity":1}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	metadata := c.answer["metadata"].(map[string]any)
	if got, want := fmt.Sprintf("%v %v %v %v", metadata["name"], metadata["labels"], metadata["annotations"], metadata["finalizers"]), "a map[a:b] <nil> [e.f/g]"; got != want || metadata["uid"] == nil {
		t.Errorf("got metadata %v, want %s", metadata, want)
	}
}

// ownPizza is an internal version of a pizza.
type ownPizza struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Names []string
}

func (p *ownPizza) DeepCopyObject() runtime.Object { c := *p; c.ObjectMeta = *p.DeepCopy(); return &c }

func addConversion[A, B any](s *runtime.Scheme, convert func(*A, *B)) error {
	return s.AddConversionFunc((*A)(nil), (*B)(nil), func(in, out any, _ conversion.Scope) error {
		convert(in.(*A), out.(*B))
		return nil
	})
}

// A function gets the object before the request too, in the version of the request, and only if the rules accept the object.
func TestValidate_OldObject(t *testing.T) {
	t.Parallel()
	var calls []string
	record := func(version string, cost, before *float64, updated bool) field.ErrorList {
		value := func(p *float64) any {
			if p == nil {
				return "none"
			}
			return *p
		}
		calls = append(calls, fmt.Sprintf("%s: updated %t, cost %v, was %v", version, updated, value(cost), value(before)))
		if cost != nil && *cost == 13 {
			return field.ErrorList{field.Invalid(field.NewPath("status", "cost"), *cost, "bad luck")}
		}
		return nil
	}
	s := types(t)
	c := newClient(t, serve(t, s, pizzas(t, s, definition(t),
		resource.Validate(func(_ context.Context, p, old *v1alpha1.Pizza) field.ErrorList {
			if old == nil {
				old = &v1alpha1.Pizza{}
			}
			return record("v1alpha1", p.Status.Cost, old.Status.Cost, old.UID != "")
		}),
		resource.Validate(func(_ context.Context, p, old *v1beta1.Pizza) field.ErrorList {
			if old == nil {
				old = &v1beta1.Pizza{}
			}
			return record("v1beta1", p.Status.Cost, old.Status.Cost, old.UID != "")
		}))))
	var got []string
	for _, request := range [][2]string{
		{"create v1beta1", `{"metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham","quantity":0}]}}`},
		{"create v1beta1", `{"metadata":{"name":"a"},"spec":{"toppings":[{"name":"ham"}]}}`},
		{"patch v1alpha1 a/status", `{"status":{"cost":2}}`},
		{"patch v1beta1 a/status", `{"status":{"cost":13}}`},
		{"patch v1beta1 a", `{"metadata":{"labels":{"a":"b"}}}`},
	} {
		got = append(got, c.send(request[0], request[1]))
	}
	if diff := cmp.Diff([]string{
		`422 Invalid, spec.toppings[0].quantity: FieldValueInvalid`,
		`201 {"toppings":[{"name":"ham","quantity":1}]}`,
		`200 {"toppings":["ham"]}`,
		`422 Invalid, status.cost: FieldValueInvalid`,
		`200 {"toppings":[{"name":"ham","quantity":1}]}`,
	}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"v1beta1: updated false, cost none, was none",
		"v1alpha1: updated true, cost 2, was none",
		"v1beta1: updated true, cost 13, was 2",
		"v1beta1: updated true, cost 2, was 2",
	}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

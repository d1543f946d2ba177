package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

// calls notes which functions were called.
type calls []string

func (c *calls) mutator(name string, filters ...admission.Filter) admission.Option {
	return admission.Mutate(func(context.Context, *v1beta1.Pizza) error { *c = append(*c, name); return nil }, filters...)
}

func (c *calls) validator(name string, filters ...admission.Filter) admission.Option {
	return admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		*c = append(*c, name)
		return nil, nil
	}, filters...)
}

// expect asks, and compares the calls.
func (c *calls) expect(t *testing.T, h http.Handler, r request, want ...string) {
	t.Helper()
	*c = nil
	if response := ask(t, h, r); !response.Allowed {
		t.Errorf("%v is denied: %v", r, response.Result)
	}
	if diff := cmp.Diff(calls(want), *c); diff != "" {
		t.Errorf("%v (-want +got):\n%s", r, diff)
	}
}

// A function for a subresource sees that one, and no other.
func TestSubresource(t *testing.T) {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Functions(autoscalingv1.AddToScheme))
	expect.NoError(t, err)
	var c calls
	h := admission.NewHandler(s,
		c.mutator("mutate"), c.mutator("mutate status", admission.Subresource("status")),
		c.validator("validate"), c.validator("validate status", admission.Subresource("status")),
		admission.Validate(func(_ context.Context, scale *autoscalingv1.Scale) (errs field.ErrorList, _ error) {
			c = append(c, "validate scale")
			if scale.Spec.Replicas > 10 {
				errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "the oven holds 10"))
			}
			return errs, nil
		}, admission.Subresource("scale")))
	object := pizza("v1beta1", "")
	c.expect(t, h, request{object: object}, "mutate", "validate")
	c.expect(t, h, request{operation: "UPDATE", subresource: "status", object: object}, "mutate status", "validate status")
	c.expect(t, h, request{operation: "UPDATE", subresource: "strange", object: "{}"})

	scale := request{operation: "UPDATE", subresource: "scale", group: "autoscaling", version: "v1", kind: "Scale",
		object: `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"margherita"},"spec":{"replicas":3}}`, old: `{}`}
	c.expect(t, h, scale, "validate scale")
	scale.object = strings.Replace(scale.object, "3", "11", 1)
	if response := ask(t, h, scale); response.Allowed || response.Result.Details.Causes[0].Field != "spec.replicas" {
		t.Errorf("got %+v", response)
	}

	scale.kind = "Scala"
	if got := undecided(t, h, scale); got.Message != "Scala default/margherita: no function is registered for kind Scala.autoscaling of subresource scale" {
		t.Errorf("got %s", got.Message)
	}
}

// A function may judge a connection.
func TestOn_Connect(t *testing.T) {
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	expect.NoError(t, err)
	h := admission.NewHandler(s, admission.Validate(func(_ context.Context, exec *corev1.PodExecOptions) (errs field.ErrorList, _ error) {
		if exec.TTY {
			errs = append(errs, field.Forbidden(field.NewPath("tty"), "must not be set"))
		}
		return errs, nil
	}, admission.Subresource("exec"), admission.On(admissionv1.Connect)))
	r := request{group: "none", version: "v1", kind: "PodExecOptions", operation: "CONNECT", subresource: "exec",
		object: `{"kind":"PodExecOptions","apiVersion":"v1","stdin":true,"tty":true,"container":"oven","command":["sh"]}`}
	if response := ask(t, h, r); response.Allowed || response.Result.Details.Causes[0].Field != "tty" {
		t.Errorf("got %+v", response)
	}
	r.object = strings.Replace(r.object, `"tty":true`, `"tty":false`, 1)
	if !ask(t, h, r).Allowed {
		t.Error("it is denied without a terminal, too")
	}
	r.object = ""
	if got := ask(t, h, r); got.Allowed || got.Result.Code != 400 {
		t.Errorf("without an object: got %+v", got)
	}
}

func TestOn(t *testing.T) {
	var c calls
	h := admission.NewHandler(pizzaScheme(t), c.mutator("at first", admission.On(admissionv1.Create)), c.validator("later", admission.On(admissionv1.Update)))
	c.expect(t, h, request{object: pizza("v1beta1", "")}, "at first")
	c.expect(t, h, request{operation: "UPDATE", object: pizza("v1beta1", "")}, "later")
	c.expect(t, h, request{operation: "DELETE"})
}

// A field that has not changed is not judged again.
func TestIfChanged(t *testing.T) {
	var c calls
	h := admission.NewHandler(pizzaScheme(t), c.validator("spec", admission.IfChanged("spec")), c.validator("meta", admission.IfChanged("metadata.labels", "metadata.annotations.a")))
	old := pizza("v1beta1", `,"spec":{"toppings":[{"name":"nails","quantity":1}]}`)
	update := func(object string) request { return request{operation: "UPDATE", object: object, old: old} }
	c.expect(t, h, request{object: old}, "spec", "meta")
	c.expect(t, h, update(old))
	c.expect(t, h, update(pizza("v1beta1", `,"status":{"cost":1},"spec": {"toppings":[{"quantity":1,"name":"nails"}]}`)))
	c.expect(t, h, update(pizza("v1beta1", `,"spec":{"toppings":[{"name":"nails","quantity":2}]}`)), "spec")
	c.expect(t, h, update(pizza("v1beta1", "")), "spec")
	c.expect(t, h, update(pizza("v1beta1", `,"spec":null`)), "spec")
	c.expect(t, h, update(strings.Replace(old, `{"name"`, `{"annotations":{"b":"1"},"name"`, 1)))
	c.expect(t, h, update(strings.Replace(old, `{"name"`, `{"annotations":{"a":"1"},"name"`, 1)), "meta")
	c.expect(t, h, update(strings.Replace(old, `{"name"`, `{"labels":{},"name"`, 1)), "meta")
	big := pizza("v1beta1", `,"spec":{"toppings":[{"name":"a","quantity":9223372036854775808}]}`)
	h = admission.NewHandler(pizzaScheme(t), admission.Mutate(func(context.Context, *unstructured.Unstructured) error { c = append(c, "big"); return nil }, admission.IfChanged("spec")))
	c.expect(t, h, request{operation: "UPDATE", object: strings.Replace(big, "808", "809", 1), old: big}, "big")

	// A field that an earlier function changed has changed.
	h = admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato), c.mutator("spec", admission.IfChanged("spec")), c.validator("meta", admission.IfChanged("metadata")))
	c = nil
	response := ask(t, h, update(old))
	if diff := cmp.Diff(calls{"spec"}, c); diff != "" || !response.Allowed {
		t.Errorf("%+v (-want +got):\n%s", response, diff)
	}
}

// Changes are looked for in the version of the function. A value that an older version keeps
// elsewhere must not be hidden from a rule of the hub.
func TestIfChanged_OlderVersion(t *testing.T) {
	reg := conversion.NewRegistry(pizzaScheme(t))
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
			if name := in.Annotations["extra"]; name != "" {
				out.Spec.Toppings = []v1beta1.PizzaTopping{{Name: name}}
			}
			return nil
		},
		func(context.Context, *v1beta1.Pizza, *v1alpha1.Pizza) error { return nil })
	expect.NoError(t, err)
	var c calls
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(reg), c.validator("spec", admission.IfChanged("spec")))
	old := strings.Replace(pizza("v1alpha1", ""), `{"name"`, `{"annotations":{"extra":"a"},"name"`, 1)
	c.expect(t, h, request{version: "v1alpha1", operation: "UPDATE", object: strings.Replace(old, `"a"`, `"b"`, 1), old: old}, "spec")
	c.expect(t, h, request{version: "v1alpha1", operation: "UPDATE", object: strings.Replace(old, `{"extra"`, `{"x":"y","extra"`, 1), old: old})
}

// A client that forgets the deletion timestamp can remove a finalizer.
func TestUnlessDeleting_MissingTimestamp(t *testing.T) {
	deny := func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return field.ErrorList{field.Required(field.NewPath("spec"), "no")}, nil
	}
	h := admission.NewHandler(pizzaScheme(t), admission.Validate(deny, admission.UnlessDeleting()), admission.ValidateDelete(deny, admission.UnlessDeleting()))
	deleting := strings.Replace(pizza("v1beta1", ""), `{"name"`, `{"deletionTimestamp":"2026-11-21T00:00:00Z","name"`, 1)
	for _, r := range []request{
		{operation: "UPDATE", object: pizza("v1beta1", ""), old: deleting}, // the API server restores it later
		{operation: "DELETE", old: deleting},
	} {
		if response := ask(t, h, r); !response.Allowed {
			t.Errorf("%v is denied: %v", r, response.Result)
		}
	}
}

// Metadata is the same in all versions.
func TestForKind_MetadataNeedsNoConversion(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(failing(errors.New("not called"))),
		admission.Mutate(label[*metav1.PartialObjectMetadata], admission.ForKind(v1beta1.GroupVersion.WithKind("Pizza"))))
	if response := ask(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", "")}); !response.Allowed || response.Patch == nil {
		t.Errorf("got %+v", response)
	}
}

// An object that is being deleted is left alone.
func TestUnlessDeleting(t *testing.T) {
	var c calls
	h := admission.NewHandler(pizzaScheme(t), c.mutator("mutate", admission.UnlessDeleting()), c.validator("validate", admission.UnlessDeleting()), c.validator("always"))
	deleting := strings.Replace(pizza("v1beta1", ""), `{"name"`, `{"deletionTimestamp":"2026-11-21T00:00:00Z","name"`, 1)
	c.expect(t, h, request{operation: "UPDATE", object: deleting, old: deleting}, "always")
	c.expect(t, h, request{operation: "UPDATE", object: strings.Replace(deleting, `"2026-11-21T00:00:00Z"`, "null", 1)}, "mutate", "validate", "always")
	c.expect(t, h, request{object: pizza("v1beta1", "")}, "mutate", "validate", "always")
	// A user's write deletes nothing.
	c.expect(t, h, request{object: deleting}, "mutate", "validate", "always")
	c.expect(t, h, request{operation: "UPDATE", object: deleting}, "mutate", "validate", "always")
}

// A function of one kind is not called for others.
func TestForKind(t *testing.T) {
	var c calls
	note := func(name string, filters ...admission.Filter) admission.Option {
		return admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
			c = append(c, name+" "+u.GroupVersionKind().Version)
			return nil
		}, filters...)
	}
	pizzas := v1beta1.GroupVersion.WithKind("Pizza")
	calzones := v1beta1.GroupVersion.WithKind("Calzone")
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)),
		note("every"), note("pizza", admission.ForKind(pizzas)), note("calzone", admission.ForKind(calzones)))
	c.expect(t, h, request{object: pizza("v1beta1", "")}, "every v1beta1", "pizza v1beta1")
	c.expect(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", "")}, "every v1alpha1", "pizza v1beta1")
	c.expect(t, h, request{kind: "Focaccia", object: strings.Replace(pizza("v1beta1", ""), "Pizza", "Focaccia", 1)}, "every v1beta1")
}

// Misused filters are found when the program starts.
func TestFilter_Faults(t *testing.T) {
	err := fault(pizzaScheme(t),
		admission.Validate(allow[*v1beta1.Pizza], admission.Subresource(""), admission.IfChanged("")),
		admission.Validate(allow[*v1beta1.Pizza], admission.IfChanged("sepc", "spec.toppings[*].name", "spec.toppings.name")), admission.Validate(allow[*v1beta1.Pizza], admission.IfChanged()),
		admission.Validate(allow[*v1beta1.Pizza], admission.On(admissionv1.Delete)), admission.Validate(allow[*v1beta1.Pizza], admission.On()),
		admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza], admission.On(admissionv1.Update)), admission.ValidateDelete(allow[*v1beta1.Pizza], admission.On(admissionv1.Create)),
		admission.Validate(allow[*v1beta1.Pizza], admission.ForKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Y"})),
		admission.Validate(allow[*metav1.PartialObjectMetadata], admission.ForKind(schema.GroupVersionKind{})),
		admission.Validate(allow[*metav1.PartialObjectMetadata], admission.ForKind(schema.GroupVersionKind{Kind: "Pizza"})))
	expect.ErrorContains(t, err,
		"Subresource has no name", "IfChanged has no path", "ForKind /, Kind= has no kind or no version", "ForKind /, Kind=Pizza has no kind or no version",
		`IfChanged: "": expected a field name`, `IfChanged: sepc: v1beta1.Pizza has no field "sepc"`, `IfChanged: "spec.toppings[*].name": expected the path of the whole list`,
		`IfChanged: spec.toppings.name: []v1beta1.PizzaTopping has no fields`,
		`On "DELETE": a function can be called on CREATE, UPDATE and CONNECT`, "On has no operations", "On: the operation of the function is fixed, use On with Mutate or Validate",
		"ForKind x/v1, Kind=Y: the Go type of the function has kind restaurant.programming-kubernetes.info/v1beta1, Kind=Pizza",
	)
	if n := strings.Count(fmt.Sprint(err), "On: the operation of the function is fixed, use On with Mutate or Validate"); n != 2 {
		t.Errorf("%d functions of one operation take others in %v", n, err)
	}
}

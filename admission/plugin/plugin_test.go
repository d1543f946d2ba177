package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/plugin"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

var types = func() *runtime.Scheme {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
		scheme.Functions(func(s *runtime.Scheme) error {
			s.AddTypeDefaultingFunc(&v1beta1.Pizza{}, func(obj any) {
				for i, topping := range obj.(*v1beta1.Pizza).Spec.Toppings {
					if topping.Quantity == nil {
						obj.(*v1beta1.Pizza).Spec.Toppings[i].Quantity = new(int32(1))
					}
				}
			})
			return nil
		}))
	if err != nil {
		panic(err)
	}
	return s
}

func tomato(_ context.Context, pizza *v1beta1.Pizza) error {
	pizza.Spec.Toppings = append(pizza.Spec.Toppings, v1beta1.PizzaTopping{Name: "tomato"})
	return nil
}

func noPineapple(ctx context.Context, pizza *v1beta1.Pizza) (errs field.ErrorList, err error) {
	for i, topping := range pizza.Spec.Toppings {
		switch topping.Name {
		case "pineapple":
			errs = append(errs, field.Forbidden(field.NewPath("spec", "toppings").Index(i), "no pineapple"))
		case "tuna":
			admission.Warn(ctx, "tuna is for cats")
			err = admission.AuditAnnotation(ctx, "fish", "tuna")
		case "mystery":
			err = errors.New("the cook is asleep")
		case "nothing":
			err = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 1000, Message: "no such code"}}
		}
	}
	return errs, err
}

// attributes are those of a request for a pizza with one topping; old is nil for a creation.
func attributes(topping string, old *v1beta1.Pizza) apiadmission.Attributes {
	pizza := &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: topping}}}}
	operation, before := apiadmission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = apiadmission.Update, old
	}
	return apiadmission.NewAttributesRecord(pizza, before, v1beta1.GroupVersion.WithKind("Pizza"), "default", "x",
		v1beta1.GroupVersion.WithResource("pizzas"), "", operation, nil, false, &user.DefaultInfo{Name: "ann"})
}

func Example() {
	s := types()
	toppings := plugin.New("Toppings")
	toppings.Handle(admission.NewHandler(s, admission.Mutate(tomato), admission.Validate(noPineapple)))

	// A server does this for each request.
	request, objects := attributes("pineapple", nil), apiadmission.NewObjectInterfacesFromScheme(s)
	if err := toppings.Admit(context.Background(), request, objects); err != nil {
		panic(err)
	}
	fmt.Println(len(request.GetObject().(*v1beta1.Pizza).Spec.Toppings), "toppings")
	fmt.Println(toppings.Validate(context.Background(), request, objects))
	// Output:
	// 2 toppings
	// Pizza.restaurant.programming-kubernetes.info "x" is invalid: spec.toppings[0]: Forbidden: no pineapple
}

func TestAdmit_ChangesAndDefaultsTheObject(t *testing.T) {
	s := types()
	p := plugin.New("Toppings")
	p.Handle(admission.NewHandler(s, admission.Mutate(tomato)))
	a := attributes("ham", nil)
	expect.NoError(t, p.Admit(t.Context(), a, apiadmission.NewObjectInterfacesFromScheme(s)))
	one := new(int32(1))
	want := []v1beta1.PizzaTopping{{Name: "ham", Quantity: one}, {Name: "tomato", Quantity: one}}
	if diff := cmp.Diff(want, a.GetObject().(*v1beta1.Pizza).Spec.Toppings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

// annotations records the audit annotations of a request.
type annotations struct {
	apiadmission.Attributes
	got map[string]string
}

func (a annotations) AddAnnotation(key, value string) error {
	a.got[key] = value
	return nil
}

func TestValidate_Decisions(t *testing.T) {
	s := types()
	p := plugin.New("Toppings")
	var observed []admission.Decision
	p.Handle(admission.NewHandler(s, admission.Validate(noPineapple), admission.Observe(func(o admission.Observation) { observed = append(observed, o.Decision) })))
	objects := apiadmission.NewObjectInterfacesFromScheme(s)
	for topping, want := range map[string]struct {
		code     int32
		message  string
		decision admission.Decision
	}{
		"ham":       {0, "", admission.Allowed},
		"pineapple": {http.StatusUnprocessableEntity, "no pineapple", admission.Denied},
		"mystery":   {http.StatusInternalServerError, "Pizza default/x: the cook is asleep", admission.Undecided},
		"nothing":   {http.StatusInternalServerError, "no such code", admission.Undecided},
	} {
		observed = nil
		err := p.Validate(t.Context(), attributes(topping, nil), objects)
		if want.code == 0 && err != nil {
			t.Errorf("%s: %v", topping, err)
		}
		if want.code != 0 {
			status := apierrors.APIStatus(nil)
			if !errors.As(err, &status) || status.Status().Code != want.code || !strings.Contains(err.Error(), want.message) {
				t.Errorf("%s: got %v, want %d, %s", topping, err, want.code, want.message)
			}
		}
		if diff := cmp.Diff([]admission.Decision{want.decision}, observed); diff != "" {
			t.Errorf("%s: observed (-want +got):\n%s", topping, diff)
		}
	}
	warnings, a := &recorder{}, annotations{attributes("tuna", nil), map[string]string{}}
	expect.NoError(t, p.Validate(warning.WithWarningRecorder(t.Context(), warnings), a, objects))
	if diff := cmp.Diff(&recorder{"tuna is for cats"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"toppings/fish": "tuna"}, a.got); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

// The server may call the functions again, and lets nobody change an annotation.
func TestAdmit_AnotherAnnotation(t *testing.T) {
	p, n := plugin.New("Toppings"), 0
	p.Handle(admission.NewHandler(types(), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		n++
		return admission.AuditAnnotation(ctx, "calls", strconv.Itoa(n))
	})))
	a, objects := attributes("ham", nil), apiadmission.NewObjectInterfacesFromScheme(types())
	for range 2 {
		expect.NoError(t, p.Admit(t.Context(), a, objects))
	}
	if n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestValidate_SeesTheRequest(t *testing.T) {
	s := types()
	p := plugin.New("Toppings")
	p.Handle(admission.NewHandler(s, admission.ValidateUpdate(func(ctx context.Context, pizza, old *v1beta1.Pizza) (field.ErrorList, error) {
		request, _ := admission.RequestFrom(ctx)
		return nil, fmt.Errorf("%s %s %s by %s, was %s", request.Operation, request.Resource.Resource, pizza.Spec.Toppings[0].Name, request.UserInfo.Username, old.Spec.Toppings[0].Name)
	})))
	old := attributes("ham", nil).GetObject().(*v1beta1.Pizza)
	err := p.Validate(t.Context(), attributes("tuna", old), apiadmission.NewObjectInterfacesFromScheme(s))
	expect.ErrorContains(t, err, "UPDATE pizzas tuna by ann, was ham")
}

func TestPlugin_LeavesOtherRequestsAlone(t *testing.T) {
	s := types()
	p := plugin.New("Toppings")
	deny := func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) { return nil, errors.New("called") }
	p.Handle(admission.NewHandler(s, admission.Validate(deny), admission.ValidateDelete(deny)))
	objects := apiadmission.NewObjectInterfacesFromScheme(s)
	pizzas, kind := v1beta1.GroupVersion.WithResource("pizzas"), v1beta1.GroupVersion.WithKind("Pizza")
	for name, a := range map[string]apiadmission.Attributes{
		"another kind":  apiadmission.NewAttributesRecord(&v1alpha1.Topping{}, nil, v1alpha1.GroupVersion.WithKind("Topping"), "", "x", v1alpha1.GroupVersion.WithResource("toppings"), "", apiadmission.Create, nil, false, nil),
		"a subresource": apiadmission.NewAttributesRecord(&v1beta1.Pizza{}, &v1beta1.Pizza{}, kind, "default", "x", pizzas, "status", apiadmission.Update, nil, false, nil),
		"a collection":  apiadmission.NewAttributesRecord(nil, nil, kind, "default", "", pizzas, "", apiadmission.Delete, nil, false, nil),
	} {
		if err := errors.Join(p.Admit(t.Context(), a, objects), p.Validate(t.Context(), a, objects)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	deletion := apiadmission.NewAttributesRecord(nil, &v1beta1.Pizza{}, kind, "default", "x", pizzas, "", apiadmission.Delete, nil, false, nil)
	expect.ErrorContains(t, p.Validate(t.Context(), deletion, objects), "called")
}

func TestPlugin_NeedsAHandler(t *testing.T) {
	p := plugin.New("Toppings")
	if err := p.ValidateInitialization(); err == nil || err.Error() != "plugin: Toppings: the handler is missing: call Handle" {
		t.Errorf("got %v", err)
	}
	plugins := apiadmission.NewPlugins()
	p.Register(plugins)
	if diff := cmp.Diff([]string{"Toppings"}, plugins.Registered()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "expected one of admission.NewHandler") {
			t.Errorf("got %v", v)
		}
	}()
	p.Handle(http.NotFoundHandler())
}

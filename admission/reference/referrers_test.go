package reference_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

func follow[T runtime.Object](t testing.TB, resource schema.GroupResource, informer reference.Informer, target reference.Resource, refs func(T) []reference.Ref) *reference.Referrers {
	t.Helper()
	r, err := reference.NewReferrers(resource, accept(informer), target, refs)
	expect.NoError(t, err)
	return r
}

// denial returns why a topping cannot be deleted; it is empty if it can.
func denial(t testing.TB, name string, referrers ...*reference.Referrers) string {
	t.Helper()
	errs, err := reference.NotReferenced[*v1alpha1.Topping](referrers...)(t.Context(), topping(name))
	if err == nil && errs == nil {
		return ""
	}
	text, ok := strings.CutPrefix(fmt.Sprint(err), fmt.Sprintf("toppings.restaurant.programming-kubernetes.info %q is forbidden: referenced by ", name))
	if errs != nil || !ok || !apierrors.IsForbidden(err) {
		t.Errorf("%s: got %v and %v", name, errs, err)
	}
	return text
}

func names(referrers *reference.Referrers, namespace, name string) (all []string) {
	for _, user := range referrers.Of(namespace, name) {
		all = append(all, user.String())
	}
	return all
}

// An object that is used is not deleted, and its users are named.
func TestNotReferenced(t *testing.T) {
	informer := holding(pizza("margherita", "tomato", "mozzarella", "tomato"))
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	informer.add(pizza("bianca", "mozzarella", ""))
	for name, want := range map[string]string{"salami": "", "mozzarella": "pizzas: default/bianca, default/margherita", "tomato": "pizzas: default/margherita"} {
		if got := denial(t, name, pizzasOf); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for i := range 12 {
		informer.add(pizza(fmt.Sprintf("p%02d", 11-i), "tomato"))
	}
	want := "pizzas: default/margherita, default/p00, default/p01, default/p02, default/p03, default/p04, default/p05, default/p06, default/p07, default/p08 and 3 more, 13 in all"
	if diff := cmp.Diff(want, denial(t, "tomato", pizzasOf)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := names(pizzasOf, "", "tomato"); len(got) != 13 || got[12] != "default/p11" {
		t.Errorf("all are %v", got)
	}
}

// The index follows every event.
func TestReferrers_Events(t *testing.T) {
	informer := holding()
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	check := func(when string, tomato, salami []string) {
		t.Helper()
		if diff := cmp.Diff([][]string{tomato, salami}, [][]string{names(pizzasOf, "", "tomato"), names(pizzasOf, "", "salami")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	informer.add(pizza("a", "tomato"), pizza("b", "tomato", "salami"))
	check("added", []string{"default/a", "default/b"}, []string{"default/b"})
	informer.update(pizza("a", "salami"))
	check("changed", []string{"default/b"}, []string{"default/a", "default/b"})
	informer.update(pizza("a", "salami"))
	check("sent again", []string{"default/b"}, []string{"default/a", "default/b"})
	informer.add(pizza("a", "tomato"))
	check("added again, as after an informer was replaced", []string{"default/a", "default/b"}, []string{"default/b"})
	informer.delete(cache.DeletedFinalStateUnknown{Key: "default/a", Obj: pizza("a", "mushrooms")})
	check("gone in another state", []string{"default/b"}, []string{"default/b"})
	informer.delete(pizza("a", "tomato"))
	check("gone again", []string{"default/b"}, []string{"default/b"})
	informer.delete(cache.DeletedFinalStateUnknown{Key: "default/b"})
	check("gone in no state", nil, nil)
}

// Objects of two kinds refer to one, and objects of one kind refer to two.
func TestNotReferenced_SeveralKinds(t *testing.T) {
	pizzaEvents, menuEvents := holding(), holding()
	menus := schema.GroupResource{Group: "example.com", Resource: "menus"}
	ovens := schema.GroupResource{Group: "example.com", Resource: "ovens"}
	pizzasOf := follow(t, pizzas, pizzaEvents, reference.ClusterScoped(toppings), toppingsOf)
	bakedIn := follow(t, pizzas, pizzaEvents, reference.Namespaced(ovens), func(p *v1beta1.Pizza) []reference.Ref {
		return []reference.Ref{{Name: p.Labels["oven"]}, {Namespace: "cellar", Name: "grill", Optional: p.Name == "x"}}
	})
	onMenu := func(u *unstructured.Unstructured) []reference.Ref {
		return []reference.Ref{{Name: u.Object["topping"].(string)}}
	}
	menusOf := follow(t, menus, menuEvents, reference.ClusterScoped(toppings), onMenu)

	p := pizza("margherita", "tomato")
	p.Labels = map[string]string{"oven": "big"}
	pizzaEvents.add(p, pizza("x", "tomato"))
	for i := range 12 {
		menuEvents.add(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("m%02d", i)}, "topping": "tomato"}})
	}
	want := "pizzas: default/margherita, default/x; menus: m00, m01, m02, m03, m04, m05, m06, m07 and 4 more, 14 in all"
	if diff := cmp.Diff(want, denial(t, "tomato", pizzasOf, menusOf)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The namespace of a pizza is that of its oven; what is optional keeps nothing.
	if diff := cmp.Diff([]string{"default/margherita"}, names(bakedIn, "default", "big")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"default/margherita"}, names(bakedIn, "cellar", "grill")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Another resource is not judged.
func TestNotReferenced_AnotherResource(t *testing.T) {
	informer := holding()
	podsOf := follow(t, schema.GroupResource{Resource: "pods"}, informer, reference.Namespaced(secrets), secretsOf)
	informer.add(pizza("cook", "oven"))
	unused := reference.NotReferenced[*metav1.PartialObjectMetadata](podsOf)
	oven := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "oven"}}
	request := func(resource string) context.Context {
		return admission.WithRequest(t.Context(), &admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: "default", Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}})
	}
	if _, err := unused(request("secrets"), oven); !apierrors.IsForbidden(err) {
		t.Errorf("a secret: %v", err)
	}
	if errs, err := unused(request("configmaps"), oven); errs != nil || err != nil {
		t.Errorf("a ConfigMap of the same name: %v and %v", errs, err)
	}
}

// A deletion is not judged by the wrong scope.
func TestNotReferenced_WrongScope(t *testing.T) {
	informer := holding()
	wrong := follow(t, schema.GroupResource{Resource: "pods"}, informer, reference.ClusterScoped(secrets), toppingsOf)
	_, err := reference.NotReferenced[*corev1.Secret](wrong)(t.Context(), secret("default", "oven"))
	if want := `reference: secrets "default/oven" has a namespace, but its kind was declared ClusterScoped`; !isFinal(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	wrong = follow(t, pizzas, informer, reference.Namespaced(toppings), toppingsOf)
	_, err = reference.NotReferenced[*v1alpha1.Topping](wrong)(t.Context(), topping("tomato"))
	if want := `reference: toppings.restaurant.programming-kubernetes.info "tomato" has no namespace, but its kind was declared Namespaced`; !isFinal(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A panic of the function does not end the informer.
func TestReferrers_Panic(t *testing.T) {
	informer := holding()
	r := follow(t, pizzas, informer, reference.ClusterScoped(toppings), func(p *v1beta1.Pizza) []reference.Ref {
		return []reference.Ref{{Name: p.Spec.Toppings[0].Name}}
	})
	informer.add(pizza("plain"), pizza("margherita", "tomato"))
	_, err := reference.NotReferenced[*v1alpha1.Topping](r)(t.Context(), topping("salami"))
	want := `the references of pizzas.restaurant.programming-kubernetes.info "default/plain" cannot be found: panic: `
	if !isFinal(err) || !strings.HasPrefix(err.Error(), want) || r.Ready(nil) == nil {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := names(r, "", "tomato"); !cmp.Equal(got, []string{"default/margherita"}) {
		t.Errorf("what comes after is not indexed: %v", got)
	}
}

// Nothing is allowed before the events have come.
func TestNotReferenced_UnsyncedInformer(t *testing.T) {
	informer := &events{}
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	_, err := reference.NotReferenced[*v1alpha1.Topping](pizzasOf)(t.Context(), topping("tomato"))
	const want = "the informer of pizzas.restaurant.programming-kubernetes.info has not synced yet"
	if !isRetry(err, http.StatusServiceUnavailable) || err.Error() != want || pizzasOf.HasSynced() {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := pizzasOf.Ready(nil); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	informer.synced = true
	expect.NoError(t, pizzasOf.Ready(nil))
}

// An informer of another type is an error, and does not count as one without users.
func TestReferrers_AnotherType(t *testing.T) {
	informer := holding()
	r := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	informer.add(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}})
	_, err := reference.NotReferenced[*v1alpha1.Topping](r)(t.Context(), topping("tomato"))
	want := "the informer of pizzas.restaurant.programming-kubernetes.info holds a *unstructured.Unstructured, not a *v1beta1.Pizza"
	if err == nil || err.Error() != want || r.Ready(nil) == nil {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReferrers_DeletingUsersDoNotCount(t *testing.T) {
	informer := holding()
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	p := pizza("margherita", "tomato")
	informer.add(p)
	if got := denial(t, "tomato", pizzasOf); got != "pizzas: default/margherita" {
		t.Errorf("before: %s", got)
	}
	p = p.DeepCopy()
	p.DeletionTimestamp = new(metav1.Now())
	informer.update(p)
	if got := denial(t, "tomato", pizzasOf); got != "" {
		t.Errorf("while it is being deleted: %s", got)
	}
}

// An object that is being deleted already is not kept.
func TestNotReferenced_DeletingObject(t *testing.T) {
	informer := holding()
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	informer.add(pizza("margherita", "tomato"))
	tomato := topping("tomato")
	tomato.DeletionTimestamp = new(metav1.Now())
	decides(t, reference.NotReferenced[*v1alpha1.Topping](pizzasOf), tomato)
}

// A namespace that is deleted is emptied. Pizzas that name each other must not keep their
// namespace.
func TestNotReferenced_DeletingNamespace(t *testing.T) {
	informer := holding()
	pizzasOf := follow(t, pizzas, informer, reference.Namespaced(pizzas), secretsOf)
	h := newHandler(t, admission.ValidateDelete(reference.NotReferenced[*v1beta1.Pizza](pizzasOf)))
	margherita := pizza("margherita", "margherita", "bianca")
	informer.add(margherita, pizza("bianca", "margherita"))
	const controller = "system:serviceaccount:kube-system:namespace-controller"
	const forbidden = `pizzas.restaurant.programming-kubernetes.info "margherita" is forbidden: referenced by pizzas: `
	if got := ask(t, h, request{old: margherita, user: "ada"}); got != forbidden+"default/bianca" {
		t.Errorf("a user deletes it: %s", got)
	}
	if got := ask(t, h, request{old: margherita, user: controller}); got != "allowed" {
		t.Errorf("the namespace is deleted: %s", got)
	}
	elsewhere := pizza("calzone", "default/margherita")
	elsewhere.Namespace = "other"
	informer.add(elsewhere)
	if got := ask(t, h, request{old: margherita, user: controller}); got != forbidden+"other/calzone" {
		t.Errorf("the namespace is deleted, with a user elsewhere: %s", got)
	}
	if got := ask(t, h, request{old: margherita, user: "ada"}); got != forbidden+"default/bianca, other/calzone" {
		t.Errorf("a user deletes it: %s", got)
	}
}

// Faults are found when the program starts.
func TestNewReferrers_Faults(t *testing.T) {
	if _, err := reference.NewReferrers(pizzas, reference.Unwatched(&events{fails: fmt.Errorf("informer stopped")}), reference.ClusterScoped(toppings), toppingsOf); err == nil || !strings.HasSuffix(err.Error(), ": informer stopped") {
		t.Errorf("got %v", err)
	}
	a := follow(t, pizzas, &events{}, reference.ClusterScoped(toppings), toppingsOf)
	b := follow(t, pizzas, &events{}, reference.Namespaced(secrets), toppingsOf)
	mustPanic(t, "reference: NotReferenced: no referrers", func() { reference.NotReferenced[*v1alpha1.Topping]() })
	mustPanic(t, "reference: NotReferenced: pizzas.restaurant.programming-kubernetes.info refer to secrets, but pizzas.restaurant.programming-kubernetes.info refer to toppings.restaurant.programming-kubernetes.info: expected referrers of one target", func() {
		reference.NotReferenced[*v1alpha1.Topping](a, b)
	})
}

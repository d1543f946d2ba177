package reference_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

var (
	pizzas   = schema.GroupResource{Group: "restaurant.programming-kubernetes.info", Resource: "pizzas"}
	toppings = schema.GroupResource{Group: "restaurant.programming-kubernetes.info", Resource: "toppings"}
)

// informer is an informer that is filled by hand.
type informer struct {
	cache.Indexer
	behind bool
}

func (i *informer) HasSynced() bool           { return !i.behind }
func (i *informer) GetIndexer() cache.Indexer { return i.Indexer }

var _ reference.Informer = cache.SharedIndexInformer(nil)

func newInformer(t testing.TB, objects ...any) *informer {
	t.Helper()
	i := &informer{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	for _, obj := range objects {
		if err := i.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func topping(name string) *v1alpha1.Topping {
	return &v1alpha1.Topping{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Topping"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

func pizza(name string, toppings ...string) *v1beta1.Pizza {
	p := &v1beta1.Pizza{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for _, t := range toppings {
		p.Spec.Toppings = append(p.Spec.Toppings, v1beta1.PizzaTopping{Name: t})
	}
	return p
}

func toppingsOf(p *v1beta1.Pizza) []reference.Ref {
	var refs []reference.Ref
	for i, t := range p.Spec.Toppings {
		refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i).Child("name"), Name: t.Name})
	}
	return refs
}

// live is a cluster that counts how often it is asked for a name.
type live map[string]int

func (l live) get(_ context.Context, _, name string) error {
	l[name]++
	switch name {
	case "new":
		return nil
	case "secret":
		return apierrors.NewForbidden(toppings, name, errors.New("RBAC"))
	default:
		return apierrors.NewNotFound(toppings, name)
	}
}

func TestAllMissingReferencesAreNamedWithTheirFields(t *testing.T) {
	asked := live{}
	check := reference.Exists(reference.NewTarget(toppings, newInformer(t, topping("tomato")), asked.get), toppingsOf)
	errs, err := check(t.Context(), pizza("x", "tomato", "nails", "tomato", "new", "glue", "nails", ""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		`spec.toppings[1].name: Not found: "nails"`,
		`spec.toppings[4].name: Not found: "glue"`,
		`spec.toppings[5].name: Not found: "nails"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(live{"nails": 1, "new": 1, "glue": 1}, asked); diff != "" {
		t.Errorf("only what the informer does not know is looked up, once (-want +got):\n%s", diff)
	}
}

func TestNothingIsDeniedBeforeTheInformerHasSynced(t *testing.T) {
	behind := newInformer(t)
	behind.behind = true
	referrers, err := reference.NewReferrers(pizzas, behind, toppingsOf)
	if err != nil {
		t.Fatal(err)
	}
	asked := live{}
	_, existsErr := reference.Exists(reference.NewTarget(toppings, behind, asked.get), toppingsOf)(t.Context(), pizza("x", "nails"))
	_, notReferencedErr := reference.NotReferenced[*v1alpha1.Topping](toppings, referrers)(t.Context(), topping("tomato"))
	for resource, err := range map[string]error{"toppings": existsErr, "pizzas": notReferencedErr} {
		var status *apierrors.StatusError
		if !errors.As(err, &status) || status.ErrStatus.Code != http.StatusServiceUnavailable || status.ErrStatus.Details.RetryAfterSeconds != 1 {
			t.Errorf("%s: got %v, want an error to be tried again", resource, err)
		} else if want := "the informer of " + resource + ".restaurant.programming-kubernetes.info has not synced yet"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the API server was asked for %v", asked)
	}
}

func TestAFailedLookupIsNoVerdict(t *testing.T) {
	check := reference.Exists(reference.NewTarget(toppings, newInformer(t), live{}.get), toppingsOf)
	errs, err := check(t.Context(), pizza("x", "secret"))
	if errs != nil || !apierrors.IsServiceUnavailable(err) || apierrors.IsForbidden(err) {
		t.Errorf("got %v and %v, want an error to be tried again", errs, err)
	}
	if want := `spec.toppings[0].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "secret" exists`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestANamespacedReferenceIsLookedUpInItsNamespace(t *testing.T) {
	known := newInformer(t, pizza("margherita"))
	check := reference.Exists(
		reference.NewTarget(pizzas, known, func(context.Context, string, string) error { return apierrors.NewNotFound(pizzas, "") }),
		func(*v1beta1.Pizza) []reference.Ref {
			return []reference.Ref{
				{Path: field.NewPath("a"), Namespace: "default", Name: "margherita"},
				{Path: field.NewPath("b"), Namespace: "other", Name: "margherita"},
			}
		})
	errs, err := check(t.Context(), pizza("x"))
	if err != nil || len(errs) != 1 || errs[0].Field != "b" {
		t.Errorf("got %v and %v", errs, err)
	}
}

func TestWhatIsUsedIsNotDeletedAndItsUsersAreNamed(t *testing.T) {
	informer := newInformer(t, pizza("margherita", "tomato", "mozzarella", "tomato"), pizza("bianca", "mozzarella"))
	referrers, err := reference.NewReferrers(pizzas, informer, toppingsOf)
	if err != nil {
		t.Fatal(err)
	}
	check := reference.NotReferenced[*v1alpha1.Topping](toppings, referrers)
	message := func(name string) string {
		errs, err := check(t.Context(), topping(name))
		if errs != nil || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v and %v", name, errs, err)
		}
		return fmt.Sprint(err)
	}
	const forbidden = `toppings.restaurant.programming-kubernetes.info %q is forbidden: it is used by %s`
	if got := message("salami"); got != "<nil>" {
		t.Errorf("an unused topping: %s", got)
	}
	if diff := cmp.Diff(fmt.Sprintf(forbidden, "mozzarella", "pizzas: default/bianca, default/margherita"), message("mozzarella")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fmt.Sprintf(forbidden, "tomato", "pizzas: default/margherita"), message("tomato")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 12 {
		if err := informer.Add(pizza(fmt.Sprintf("p%02d", i), "tomato")); err != nil {
			t.Fatal(err)
		}
	}
	want := "pizzas: default/margherita, default/p00, default/p01, default/p02, default/p03, default/p04, default/p05, default/p06, default/p07, default/p08 and 3 more, 13 in all"
	if diff := cmp.Diff(fmt.Sprintf(forbidden, "tomato", want), message("tomato")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOneInformerTakesOneIndexAResource(t *testing.T) {
	informer := newInformer(t)
	if _, err := reference.NewReferrers(pizzas, informer, toppingsOf); err != nil {
		t.Fatal(err)
	}
	if _, err := reference.NewReferrers(pizzas, informer, toppingsOf); err == nil || !strings.Contains(err.Error(), "reference: indexing pizzas.restaurant.programming-kubernetes.info") {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestAnObjectThatIsBeingDeletedIsNotChecked(t *testing.T) {
	check := reference.Exists(reference.NewTarget(toppings, newInformer(t), live{}.get), toppingsOf)
	p := pizza("x", "nails")
	p.DeletionTimestamp = new(metav1.Now())
	if errs, err := check(t.Context(), p); errs != nil || err != nil {
		t.Errorf("got %v and %v", errs, err)
	}
}

func TestObjectsOfAnotherTypeAndEmptyNamesAreNotIndexed(t *testing.T) {
	informer := newInformer(t, topping("tomato"), pizza("x", ""))
	referrers, err := reference.NewReferrers(pizzas, informer, toppingsOf)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := referrers.Of("", ""); len(keys) > 0 || err != nil {
		t.Errorf("got %v and %v", keys, err)
	}
}

package reference_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

func TestAllMissingReferencesAreNamedWithTheirFields(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), newKitchen(t, topping("tomato")), asked), toppingsOf)
	errs, err := check(t.Context(), pizza("x", "tomato", "nails", "tomato", "new", "glue", "nails", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`spec.toppings[1].name: Not found: "nails"`,
		`spec.toppings[4].name: Not found: "glue"`,
		`spec.toppings[5].name: Not found: "nails"`,
	}
	if diff := cmp.Diff(want, messages(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"nails": 1, "new": 1, "glue": 1}, asked.was()); diff != "" {
		t.Errorf("only what the informer does not know is read, once (-want +got):\n%s", diff)
	}
}

func TestNothingIsDeniedBeforeTheInformerHasSynced(t *testing.T) {
	behind := newKitchen(t)
	behind.behind = true
	asked := &live{}
	known := target(t, reference.ClusterScoped(toppings), behind, asked)
	_, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "nails"))
	const want = "the informer of toppings.restaurant.programming-kubernetes.info has not synced yet"
	if !isRetry(err, http.StatusServiceUnavailable) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := known.Check(nil); err == nil || err.Error() != want || known.HasSynced() {
		t.Errorf("the check says %v", err)
	}
	if errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x")); errs != nil || err != nil {
		t.Errorf("a pizza that names nothing: %v and %v", errs, err)
	}
	if len(asked.was()) > 0 {
		t.Errorf("the API server was asked for %v", asked.was())
	}
	behind.behind = false
	if err := known.Check(nil); err != nil {
		t.Error(err)
	}
}

func TestAFailedReadIsNoVerdict(t *testing.T) {
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), newKitchen(t), &live{}), toppingsOf)
	for name, want := range map[string]string{
		"locked":   `spec.toppings[1].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "locked" exists: toppings.restaurant.programming-kubernetes.info "locked" is forbidden: RBAC`,
		"unserved": `spec.toppings[1].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "unserved" exists: the server could not find the requested resource`,
	} {
		errs, err := check(t.Context(), pizza("x", "nails", name))
		if errs != nil || !isRetry(err, http.StatusServiceUnavailable) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v and %v, want %s", errs, err, want)
		}
	}
}

func TestOverTheRateNothingIsDecided(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), newKitchen(t, topping("tomato")), asked, reference.LiveRate(0.001, 2)), toppingsOf)
	if errs, err := check(t.Context(), pizza("x", "nails", "glue")); len(errs) != 2 || err != nil {
		t.Errorf("within the rate: %v and %v", errs, err)
	}
	errs, err := check(t.Context(), pizza("x", "new"))
	if errs != nil || !isRetry(err, http.StatusTooManyRequests) {
		t.Errorf("over the rate: %v and %v", errs, err)
	}
	if want := `spec.toppings[0].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "new" exists: too many requests to the API server would be made`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if errs, err := check(t.Context(), pizza("x", "tomato")); errs != nil || err != nil {
		t.Errorf("a hit needs no read: %v and %v", errs, err)
	}
	if diff := cmp.Diff(map[string]int{"nails": 1, "glue": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h := newHandler(t, admission.Validate(check))
	if got := ask(t, h, request{pizza: pizza("margherita", "nails")}); !strings.HasPrefix(got, "undecided, 429, again in 1 s: ") {
		t.Error(got)
	}
}

func TestTheMissesOfOneObjectAreReadSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		known, err := reference.NewTarget(reference.ClusterScoped(toppings), newKitchen(t).informer(), func(_ context.Context, _, name string) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second) // of the bubble
			now.Add(-1)
			return apierrors.NewNotFound(toppings, name)
		}, reference.LiveConcurrency(3), reference.LiveTimeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "a", "b", "c", "d", "e", "f", "g"))
		if len(errs) != 7 || err != nil {
			t.Errorf("got %v and %v", errs, err)
		}
		if took := time.Since(begin); took != 3*time.Second || most.Load() != 3 {
			t.Errorf("it took %s, with %d reads at a time; want 3 s and 3", took, most.Load())
		}
	})
}

func TestANameThatNothingCanHaveIsNotAskedFor(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), newKitchen(t), asked), toppingsOf)
	errs, err := check(t.Context(), pizza("x", "../nodes", "..", "a%2fb"))
	if len(errs) != 3 || err != nil || len(asked.was()) > 0 {
		t.Errorf("got %v and %v after %v", errs, err, asked.was())
	}
}

func TestStrictnessCatchesWhatTheInformerStillKnows(t *testing.T) {
	asked := &live{}
	known := target(t, reference.ClusterScoped(toppings), newKitchen(t, topping("gone"), topping("new")), asked)
	if errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "gone", "new")); errs != nil || err != nil || len(asked.was()) > 0 {
		t.Errorf("without it: %v and %v after %v", errs, err, asked.was())
	}
	errs, err := reference.Exists(known, toppingsOf, reference.Strict())(t.Context(), pizza("x", "gone", "new"))
	if diff := cmp.Diff([]string{`spec.toppings[0].name: Not found: "gone"`}, messages(errs)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"gone": 1, "new": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnOptionalReferenceMayLeadToNothing(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), newKitchen(t), asked)
	check := reference.Exists(known, reference.Optional(secretsOf))
	errs, err := check(t.Context(), pizza("x", "nails", "other/nails"))
	want := []string{`spec.toppings[1].name: Forbidden: objects in namespace "default" may not name secrets in namespace "other"`}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil || len(asked.was()) > 0 {
		t.Errorf("%v after %v (-want +got):\n%s", err, asked.was(), diff)
	}
	both := func(p *v1beta1.Pizza) []reference.Ref {
		return append(reference.Optional(secretsOf)(p), secretsOf(p)...)
	}
	if errs, err := reference.Exists(known, both)(t.Context(), pizza("x", "nails")); len(errs) != 1 || err != nil {
		t.Errorf("named twice, once by a reference that is not optional: %v and %v", errs, err)
	}
}

func TestANamespacedReferenceStaysInItsNamespace(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), newKitchen(t, secret("default", "oven"), secret("other", "oven")), asked)
	check := reference.Exists(known, secretsOf)
	errs, err := check(t.Context(), pizza("x", "oven", "default/oven", "default/nails", "other/oven", "other/nails"))
	const forbidden = `Forbidden: objects in namespace "default" may not name secrets in namespace "other"`
	want := []string{
		`spec.toppings[2].name: Not found: "nails"`,
		`spec.toppings[3].name: ` + forbidden,
		`spec.toppings[4].name: ` + forbidden, // what exists and what does not get the same answer
	}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"default/nails": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAClusterScopedObjectNamesTheNamespace(t *testing.T) {
	check := reference.Exists(target(t, reference.Namespaced(secrets), newKitchen(t, secret("other", "oven")), &live{}), secretsOf)
	p := pizza("x", "other/oven", "oven")
	p.Namespace = ""
	errs, err := check(t.Context(), p)
	want := []string{`spec.toppings[1].name: Invalid value: "oven": it needs a namespace: the object that names it has none`}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTheNamespaceOfAReferenceToAClusterScopedKindIsIgnored(t *testing.T) {
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), newKitchen(t, topping("tomato")), &live{}), secretsOf)
	if errs, err := check(t.Context(), pizza("x", "other/tomato")); errs != nil || err != nil {
		t.Errorf("got %v and %v", errs, err)
	}
}

func TestThePolicyAllowsToCrossNamespaces(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), newKitchen(t, secret("shared", "oven")), asked)
	check := reference.Exists(known, secretsOf, reference.CrossNamespace(func(_ context.Context, from string, to cache.ObjectName) (bool, error) {
		if from != "default" {
			t.Errorf("asked for references from %q", from)
		}
		if to.Namespace == "broken" {
			return false, apierrors.NewForbidden(schema.GroupResource{Resource: "referencegrants"}, "", errors.New("RBAC"))
		}
		return to.Namespace == "shared", nil
	}))
	errs, err := check(t.Context(), pizza("x", "shared/oven", "shared/nails", "other/oven", "new"))
	want := []string{
		`spec.toppings[1].name: Not found: "nails"`,
		`spec.toppings[2].name: Forbidden: objects in namespace "default" may not name secrets in namespace "other"`,
	}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"shared/nails": 1, "default/new": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	errs, err = check(t.Context(), pizza("x", "broken/oven"))
	if errs != nil || !isRetry(err, http.StatusServiceUnavailable) || !strings.Contains(err.Error(), `may be named from namespace "default"`) {
		t.Errorf("a policy that fails: %v and %v", errs, err)
	}
}

func TestAnObjectThatIsBeingDeletedMayNameWhatIsMissing(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), newKitchen(t), &live{})
	check := reference.Exists(known, secretsOf, reference.OnEveryUpdate())
	p := pizza("x", "nails", "other/nails")
	p.DeletionTimestamp = new(metav1.Now())
	if errs, err := check(t.Context(), p); len(errs) != 1 || errs[0].Type != field.ErrorTypeForbidden || err != nil {
		t.Errorf("got %v and %v", errs, err)
	}
}

func TestAnUpdateAnswersForItsNewReferencesAlone(t *testing.T) {
	known := func() *reference.Target {
		return target(t, reference.ClusterScoped(toppings), newKitchen(t, topping("tomato")), &live{})
	}
	withLabel := pizza("margherita", "tomato", "vanished")
	withLabel.Labels = map[string]string{"eaten": "by-nobody"}
	old := pizza("margherita", "vanished", "tomato")
	for name, c := range map[string]struct {
		request request
		opts    []reference.Option
		want    string
	}{
		"a label, and another order": {request: request{old: old, pizza: withLabel}, want: "allowed"},
		"a label, if all is asked for": {request: request{old: old, pizza: withLabel}, opts: []reference.Option{reference.OnEveryUpdate()},
			want: `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[1].name: Not found: "vanished"`},
		"a new reference": {request: request{old: old, pizza: pizza("margherita", "vanished", "nails")},
			want: `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[1].name: Not found: "nails"`},
		"a creation": {request: request{pizza: withLabel},
			want: `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[1].name: Not found: "vanished"`},
	} {
		h := newHandler(t, admission.Validate(reference.Exists(known(), toppingsOf, c.opts...)))
		if got := ask(t, h, c.request); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestAReferenceThatIsNoLongerOptionalIsNew(t *testing.T) {
	known := target(t, reference.ClusterScoped(toppings), newKitchen(t), &live{})
	required := func(p *v1beta1.Pizza) []reference.Ref {
		if p.Labels["optional"] != "" {
			return reference.Optional(toppingsOf)(p)
		}
		return toppingsOf(p)
	}
	old := pizza("margherita", "nails")
	old.Labels = map[string]string{"optional": "yes"}
	h := newHandler(t, admission.Validate(reference.Exists(known, required)))
	want := `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[0].name: Not found: "nails"`
	if got := ask(t, h, request{old: old, pizza: pizza("margherita", "nails")}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestACrossingThatWasThereBeforeStays(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), newKitchen(t), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, secretsOf)))
	old := pizza("margherita", "other/oven")
	if got := ask(t, h, request{old: old, pizza: old}); got != "allowed" {
		t.Error(got)
	}
	if got := ask(t, h, request{old: old, pizza: pizza("margherita", "other/oven", "third/oven")}); !strings.Contains(got, `spec.toppings[1].name: Forbidden: `) {
		t.Error(got)
	}
}

// toBeta converts pizzas to v1beta1 by their version alone; these have no toppings
// in v1alpha1.
type toBeta struct{ err error }

func (c toBeta) Convert(_ context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
	text := strings.ReplaceAll(string(object), v1alpha1.GroupVersion.String(), to.String())
	return []byte(strings.ReplaceAll(text, `["vanished"]`, `[{"name":"vanished"}]`)), c.err
}

func TestAnUpdateInAnotherVersionIsConverted(t *testing.T) {
	known := target(t, reference.ClusterScoped(toppings), newKitchen(t), &live{})
	old := &v1alpha1.Pizza{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Pizza"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "margherita"},
		Spec:       v1alpha1.PizzaSpec{Toppings: []string{"vanished"}},
	}
	r := request{old: old, pizza: old, version: v1alpha1.GroupVersion.Version}
	for want, failure := range map[string]error{
		"allowed": nil,
		"undecided, 500: Pizza default/margherita: out of flour": errors.New("out of flour"),
	} {
		h := newHandler(t, admission.ConvertWith(toBeta{failure}), admission.Validate(reference.Exists(known, toppingsOf)))
		if got := ask(t, h, r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestUnstructuredObjectsAndMetadataAreAskedThroughAHandler(t *testing.T) {
	inSpec, err := reference.Fields[*unstructured.Unstructured](reference.Field{Name: "spec.toppings[*].name"})
	if err != nil {
		t.Fatal(err)
	}
	inMetadata, err := reference.Fields[*metav1.PartialObjectMetadata](reference.Field{Name: "metadata.annotations['topping']"})
	if err != nil {
		t.Fatal(err)
	}
	known := target(t, reference.ClusterScoped(toppings), newKitchen(t), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, inSpec)), admission.Validate(reference.Exists(known, inMetadata)))
	p := pizza("margherita", "nails")
	p.Annotations = map[string]string{"topping": "glue"}
	const want = `spec.toppings[0].name: Not found: "nails", metadata.annotations[topping]: Not found: "glue"`
	if got := ask(t, h, request{pizza: p}); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := ask(t, h, request{old: p, pizza: p}); got != "allowed" {
		t.Errorf("an update: %s", got)
	}
}

func TestAnObjectMayNameItself(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.Namespaced(pizzas), newKitchen(t), asked), toppingsOf)
	h := newHandler(t, admission.Validate(check))
	if got := ask(t, h, request{pizza: pizza("margherita", "margherita")}); got != "allowed" || len(asked.was()) > 0 {
		t.Errorf("%s after %v", got, asked.was())
	}
}

func TestAPanicOfThePolicyReachesTheCaller(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), newKitchen(t), &live{})
	check := reference.Exists(known, secretsOf, reference.CrossNamespace(func(context.Context, string, cache.ObjectName) (bool, error) { panic("out of flour") }))
	mustPanic(t, "out of flour", func() { _, _ = check(t.Context(), pizza("x", "a/b", "c/d")) })
}

func TestFaultsAreFoundWhenTheProgramStarts(t *testing.T) {
	_, err := reference.NewTarget(reference.Resource{}, nil, nil, reference.LiveTimeout(0), reference.LiveConcurrency(0), reference.LiveRate(0, 0))
	want := "reference: target : the informer is nil\nLiveTimeout is 0s\nLiveConcurrency is 0\nLiveRate is 0 and 0\nthe resource is empty\nthe getter is nil"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Indexer(nil, nil), (&live{}).get); err == nil || !strings.Contains(err.Error(), "the indexer or its function is nil") {
		t.Errorf("got %v", err)
	}
	mustPanic(t, "reference: CrossNamespace: the policy is nil\nreference: Authorize: LiveConcurrency is -1\nthe reviews are nil\nreference: Exists: the target is nil\nreference: Exists: the function is nil", func() {
		reference.Exists[*v1beta1.Pizza](nil, nil, reference.CrossNamespace(nil), reference.Authorize(nil, "", reference.LiveConcurrency(-1)))
	})
}

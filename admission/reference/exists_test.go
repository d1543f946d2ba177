package reference_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	testingcache "k8s.io/client-go/tools/cache/testing"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// All missing references are named with their fields.
func TestExists(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), asked), toppingsOf)
	errs, err := check(t.Context(), pizza("x", "tomato", "nails", "tomato", "new", "glue", "nails", ""))
	expect.NoError(t, err)
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

// Before the informer has synced, the API server is asked.
func TestExists_UnsyncedInformer(t *testing.T) {
	behind := holding(topping("gone"))
	behind.synced = false
	asked := &live{}
	known := target(t, reference.ClusterScoped(toppings), behind, asked)
	decides(t, reference.Exists(known, toppingsOf), pizza("x", "nails", "new", "gone"), `spec.toppings[0].name: Not found: "nails"`, `spec.toppings[2].name: Not found: "gone"`)
	const unsynced = "the informer of toppings.restaurant.programming-kubernetes.info has not synced yet"
	if err := known.Ready(nil); !isRetry(err, http.StatusServiceUnavailable) || err.Error() != unsynced {
		t.Errorf("the check says %v", err)
	}
	_, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "locked"))
	if want := `spec.toppings[0].name: ` + unsynced + `, and cannot find out whether toppings.restaurant.programming-kubernetes.info "locked" exists: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A failed read is not a verdict.
func TestExists_FailedRead(t *testing.T) {
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), reference.Unwatched(holding()), &live{}), toppingsOf)
	for name, want := range map[string]string{
		"locked":   `spec.toppings[0].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "locked" exists: toppings.restaurant.programming-kubernetes.info "locked" is forbidden: RBAC`,
		"unserved": `spec.toppings[0].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "unserved" exists: the server could not find the requested resource`,
	} {
		errs, err := check(t.Context(), pizza("x", name, "new"))
		if errs != nil || !isFinal(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v and %v, want %s", errs, err, want)
		}
	}
}

// Over the rate nothing is decided.
func TestExists_RateOfReads(t *testing.T) {
	asked := &live{}
	known := target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), asked)
	reference.LimitReads(known, 0.001, 2)
	check := reference.Exists(known, toppingsOf)
	if errs, err := check(t.Context(), pizza("x", "nails", "glue")); len(errs) != 2 || err != nil {
		t.Errorf("within the rate: %v and %v", errs, err)
	}
	errs, err := check(t.Context(), pizza("x", "new"))
	if errs != nil || !apierrors.IsTooManyRequests(err) {
		t.Errorf("over the rate: %v and %v", errs, err)
	}
	if want := `spec.toppings[0].name: cannot find out whether toppings.restaurant.programming-kubernetes.info "new" exists: the webhook's limit of requests to the API server is exceeded`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	decides(t, check, pizza("x", "tomato")) // a hit needs no read
	if diff := cmp.Diff(map[string]int{"nails": 1, "glue": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h := newHandler(t, admission.Validate(check))
	if got := ask(t, h, request{pizza: pizza("margherita", "nails")}); !strings.HasPrefix(got, "undecided, 429, again in 1 s: ") {
		t.Error(got)
	}
}

// The misses of one object are read side by side.
func TestExists_ConcurrentReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		known, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(holding()), func(_ context.Context, _, name string) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(500 * time.Millisecond) // of the bubble
			now.Add(-1)
			return apierrors.NewNotFound(toppings, name)
		})
		expect.NoError(t, err)
		begin := time.Now()
		errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", strings.Split("abcdefghijklmno", "")...))
		if len(errs) != 15 || err != nil {
			t.Errorf("got %v and %v", errs, err)
		}
		if took := time.Since(begin); took != time.Second || most.Load() != 10 {
			t.Errorf("it took %s, with %d reads at a time; want 1 s and 10", took, most.Load())
		}
	})
}

// The references of an object are checked by a few goroutines, however many there are.
func TestExists_ManyReferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most atomic.Int64
		known, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(holding()), func(_ context.Context, _, name string) error {
			most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
			time.Sleep(time.Second) // of the bubble
			return apierrors.NewNotFound(toppings, name)
		})
		expect.NoError(t, err)
		var names []string
		for i := range 10_000 {
			names = append(names, fmt.Sprint("n", i))
		}
		if errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", names...)); len(errs) == 0 || err != nil {
			t.Errorf("got %v and %v", errs, err)
		}
		if most.Load() > 1000 {
			t.Errorf("there were %d goroutines", most.Load())
		}
	})
}

// A name that no object can have is always denied.
func TestExists_ImpossibleName(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), holding(), asked)
	names := []string{"other/..", "a%2fb", "Other/x", "../x"}
	want := []string{
		`spec.toppings[0].name: Invalid value: "..": no object can have this name: may not be '..'`,
		`spec.toppings[1].name: Invalid value: "a%2fb": no object can have this name: may not contain '%'`,
		`spec.toppings[2].name: Invalid value: "x": namespace "Other": not a valid name`,
		`spec.toppings[3].name: Invalid value: "x": namespace "..": not a valid name`,
	}
	gone := pizza("x", names...)
	gone.DeletionTimestamp = new(metav1.Now())
	anywhere := reference.CrossNamespace(func(_ context.Context, _ string, to cache.ObjectName) (bool, error) {
		t.Errorf("the policy is asked for %s", to)
		return true, nil
	})
	for name, check := range map[string]func() (field.ErrorList, error){
		"a new one": func() (field.ErrorList, error) {
			return reference.Exists(known, secretsOf, anywhere)(t.Context(), pizza("x", names...))
		},
		"an optional one": func() (field.ErrorList, error) {
			return reference.Exists(known, optional(secretsOf), anywhere)(t.Context(), pizza("x", names...))
		},
		"one of an object that is being deleted": func() (field.ErrorList, error) {
			return reference.Exists(known, secretsOf, anywhere)(t.Context(), gone)
		},
	} {
		errs, err := check()
		if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil || len(asked.was()) > 0 {
			t.Errorf("%s: %v after %v (-want +got):\n%s", name, err, asked.was(), diff)
		}
	}
}

// A certain denial is given, whatever else is not known.
func TestExists_CertainDenial(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), holding(), &live{})
	check := reference.Exists(known, secretsOf)
	decides(t, check, pizza("x", "locked", "other/x", "nails", "unserved"),
		`spec.toppings[1].name: Forbidden: objects in namespace "default" may not name secrets in namespace "other"`,
		`spec.toppings[2].name: Not found: "nails"`,
	)
	behind := holding()
	behind.synced = false
	check = reference.Exists(target(t, reference.Namespaced(secrets), behind, &live{}), secretsOf)
	if errs, err := check(t.Context(), pizza("x", "locked", "other/x")); len(errs) != 1 || err != nil {
		t.Errorf("before the informer has synced: %v and %v", errs, err)
	}
	// 150 misses are more than the limits allow within two seconds.
	check = reference.Exists(target(t, reference.Namespaced(secrets), holding(), &live{}), secretsOf)
	names := []string{"other/x"}
	for i := range 150 {
		names = append(names, fmt.Sprintf("new%d", i))
	}
	if errs, err := check(t.Context(), pizza("x", names...)); len(errs) != 1 || err != nil {
		t.Errorf("over the rate: %v and %v", errs, err)
	}
}

// The client is asked to retry only after errors that may heal.
func TestExists_RetriableErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		again int // code and seconds; 0 if never
		wait  int32
	}{
		"a time that is over":    {err: context.DeadlineExceeded, again: 503, wait: 1},
		"too many requests":      {err: apierrors.NewTooManyRequests("slow down", 3), again: 429, wait: 3},
		"a server error":         {err: apierrors.NewInternalError(errors.New("etcd")), again: 503, wait: 1},
		"a server that is down":  {err: apierrors.NewServiceUnavailable("later"), again: 503, wait: 1},
		"a server that is slow":  {err: apierrors.NewTimeoutError("slow", 0), again: 503, wait: 1},
		"a refused connection":   {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, again: 503, wait: 1},
		"no permission":          {err: apierrors.NewForbidden(toppings, "x", errors.New("RBAC"))},
		"no user":                {err: apierrors.NewUnauthorized("who?")},
		"a kind that is unknown": {err: &meta.NoResourceMatchError{PartialResource: toppings.WithVersion("v1")}},
		"a kind that is gone":    {err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", toppings, "x", "404 page not found", 0, true)},
		"anything else":          {err: errors.New("no idea")},
	} {
		known, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(holding()), func(context.Context, string, string) error { return c.err })
		expect.NoError(t, err)
		errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "tomato"))
		var status *apierrors.StatusError
		switch {
		case errs != nil || err == nil:
			t.Errorf("%s: %v and %v", name, errs, err)
		case c.again == 0:
			if !isFinal(err) {
				t.Errorf("%s is asked again: %v", name, err)
			}
		case !errors.As(err, &status) || int(status.ErrStatus.Code) != c.again || status.ErrStatus.Details.RetryAfterSeconds != c.wait:
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func TestExists_CanceledRequestIsNotTooMany(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	known := target(t, reference.ClusterScoped(toppings), reference.Unwatched(holding()), &live{})
	if _, err := reference.Exists(known, toppingsOf)(ctx, pizza("x", "nails")); !isRetry(err, http.StatusServiceUnavailable) {
		t.Errorf("got %v, want 503", err)
	}
}

// The questions of one object end together.
func TestExists_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(holding()), func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		expect.NoError(t, err)
		begin := time.Now()
		_, err = reference.Exists(known, toppingsOf)(t.Context(), pizza("x", strings.Split("abcdefghijklmnopqrstuvwxyz", "")...))
		if took := time.Since(begin); !isRetry(err, http.StatusServiceUnavailable) || took != 2*time.Second {
			t.Errorf("%v after %s, want 2 s", err, took)
		}
	})
}

// An optional reference may lead to nothing.
func TestExists_OptionalReference(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), holding(), asked)
	check := reference.Exists(known, optional(secretsOf))
	errs, err := check(t.Context(), pizza("x", "nails", "other/nails"))
	want := []string{`spec.toppings[1].name: Forbidden: objects in namespace "default" may not name secrets in namespace "other"`}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil || len(asked.was()) > 0 {
		t.Errorf("%v after %v (-want +got):\n%s", err, asked.was(), diff)
	}
	both := func(p *v1beta1.Pizza) []reference.Ref {
		return append(optional(secretsOf)(p), secretsOf(p)...)
	}
	if errs, err := reference.Exists(known, both)(t.Context(), pizza("x", "nails")); len(errs) != 1 || err != nil {
		t.Errorf("named twice, once by a reference that is not optional: %v and %v", errs, err)
	}
}

// A reference to a namespaced kind stays in its namespace.
func TestExists_OtherNamespace(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), holding(secret("default", "oven"), secret("other", "oven")), asked)
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

// A cluster-scoped object must name the namespace.
func TestExists_FromClusterScope(t *testing.T) {
	check := reference.Exists(target(t, reference.Namespaced(secrets), holding(secret("other", "oven")), &live{}), secretsOf)
	p := pizza("x", "other/oven", "oven")
	p.Namespace = ""
	decides(t, check, p, `spec.toppings[1].name: Invalid value: "oven": needs a namespace: the object that names it has none`)
}

// The namespace of a reference to a cluster-scoped kind is ignored.
func TestExists_ToClusterScope(t *testing.T) {
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), &live{}), secretsOf)
	decides(t, check, pizza("x", "other/tomato"))
}

// The policy allows to cross namespaces.
func TestCrossNamespace(t *testing.T) {
	asked := &live{}
	known := target(t, reference.Namespaced(secrets), holding(secret("shared", "oven")), asked)
	check := reference.Exists(known, secretsOf, reference.CrossNamespace(func(_ context.Context, from string, to cache.ObjectName) (bool, error) {
		if from != "default" {
			t.Errorf("asked for references from %q", from)
		}
		if to.Namespace == "broken" {
			return false, apierrors.NewForbidden(schema.GroupResource{Resource: "referencegrants"}, "", errors.New("RBAC"))
		}
		return to.Namespace == "shared", nil
	}))
	decides(t, check, pizza("x", "shared/oven", "shared/nails", "other/oven", "new"),
		`spec.toppings[1].name: Not found: "nails"`,
		`spec.toppings[2].name: Forbidden: objects in namespace "default" may not name secrets in namespace "other"`,
	)
	if diff := cmp.Diff(map[string]int{"shared/nails": 1, "default/new": 1}, asked.was()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	errs, err := check(t.Context(), pizza("x", "broken/oven"))
	if errs != nil || !isFinal(err) || !strings.Contains(err.Error(), `may be named from namespace "default"`) {
		t.Errorf("a policy that fails: %v and %v", errs, err)
	}
}

// An object that is being deleted may name objects that are missing, but not one that is created with a
// deletionTimestamp.
func TestExists_DeletingObject(t *testing.T) {
	known := target(t, reference.ClusterScoped(toppings), holding(), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, toppingsOf)))
	deleting := pizza("margherita", "nails")
	deleting.DeletionTimestamp = new(metav1.Now())
	if got := ask(t, h, request{old: pizza("margherita"), pizza: deleting}); got != "allowed" {
		t.Errorf("an update: %s", got)
	}
	want := `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[0].name: Not found: "nails"`
	if got := ask(t, h, request{pizza: deleting}); got != want {
		t.Errorf("a creation: got %s, want %s", got, want)
	}
	known = target(t, reference.Namespaced(secrets), holding(), &live{})
	h = newHandler(t, admission.Validate(reference.Exists(known, secretsOf)))
	deleting = pizza("x", "nails", "other/nails")
	deleting.DeletionTimestamp = new(metav1.Now())
	if got := ask(t, h, request{old: pizza("x"), pizza: deleting}); !strings.Contains(got, "is forbidden") && !strings.Contains(got, "Forbidden") {
		t.Errorf("another namespace: got %s, want forbidden", got)
	}
}

// If the old object cannot be read, all references are new.
func TestExists_UnreadableOldObject(t *testing.T) {
	known := target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, toppingsOf)))
	old := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "kind": "Pizza", "metadata": map[string]any{"name": "margherita"}, "spec": "oops"}
	if got := ask(t, h, request{old: old, pizza: pizza("margherita", "tomato")}); got != "allowed" {
		t.Error(got)
	}
	want := `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[0].name: Not found: "nails"`
	if got := ask(t, h, request{old: old, pizza: pizza("margherita", "nails")}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	update := admission.WithRequest(t.Context(), &admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: "default"})
	if errs, err := reference.Exists(known, toppingsOf)(update, pizza("x", "nails")); len(errs) != 1 || err != nil {
		t.Errorf("without an old object: %v and %v", errs, err)
	}
}

// A Namespace names objects in namespaces by the names of these namespaces.
func TestExists_FromNamespace(t *testing.T) {
	refs := func(n *corev1.Namespace) []reference.Ref {
		return []reference.Ref{{Path: field.NewPath("metadata", "annotations").Key("secret"), Name: n.Annotations["secret"], Namespace: n.Annotations["namespace"]}}
	}
	informer := holding()
	namespacesOf := follow(t, schema.GroupResource{Resource: "namespaces"}, informer, reference.Namespaced(secrets), refs)
	check := reference.Exists(target(t, reference.Namespaced(secrets), holding(secret("shared", "oven"), secret("kitchen", "oven")), &live{}), refs)
	ctx := admission.WithRequest(t.Context(), &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "kitchen", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"}})
	kitchen := func(namespace string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kitchen", Annotations: map[string]string{"secret": "oven", "namespace": namespace}}}
	}
	if errs, err := check(ctx, kitchen("shared")); errs != nil || err != nil {
		t.Errorf("with a namespace: %v and %v", errs, err)
	}
	errs, err := check(ctx, kitchen(""))
	want := []string{`metadata.annotations[secret]: Invalid value: "oven": needs a namespace: the object that names it has none`}
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil {
		t.Errorf("without: %v (-want +got):\n%s", err, diff)
	}
	informer.add(kitchen("shared"))
	if got := names(namespacesOf, "shared", "oven"); !cmp.Equal(got, []string{"kitchen"}) {
		t.Errorf("the users are %v", got)
	}
	informer.update(kitchen(""))
	if got := namespacesOf.Of("kitchen", "oven"); got != nil {
		t.Errorf("the users are %v", got)
	}
}

// A reference without a path is named by its kind.
func TestExists_RefWithoutPath(t *testing.T) {
	check := reference.Exists(target(t, reference.ClusterScoped(toppings), reference.Unwatched(holding()), &live{}), func(*v1beta1.Pizza) []reference.Ref {
		return []reference.Ref{{Name: "nails"}}
	})
	decides(t, check, pizza("x"), `toppings: Not found: "nails"`)
}

// Neither direction relies on an informer that has stopped.
func TestTarget_StoppedInformer(t *testing.T) {
	t.Parallel()
	source := testingcache.NewFakeControllerSource()
	source.Add(topping("tomato"))
	informer := reference.NewInformer(source, &v1alpha1.Topping{}, 0, cache.Indexers{})
	known, err := reference.NewTarget(reference.ClusterScoped(toppings), informer, (&live{}).get)
	expect.NoError(t, err)
	pizzaInformer := holding()
	pizzasOf := follow(t, pizzas, pizzaInformer, reference.ClusterScoped(toppings), toppingsOf)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); informer.RunWithContext(ctx) }()
	expect.EventuallyTrue(t, "it has synced", func() bool { return known.Ready(nil) == nil })
	decides(t, reference.Exists(known, toppingsOf), pizza("x", "tomato")) // while it runs
	cancel()
	<-stopped
	pizzaInformer.stopped = true
	time.Sleep(3 * time.Second) // another replica may answer, whenever this one has started
	const want = "the informer of toppings.restaurant.programming-kubernetes.info has stopped"
	errs, err := reference.Exists(known, toppingsOf)(t.Context(), pizza("x", "tomato"))
	if len(errs) != 1 || err != nil || fmt.Sprint(known.Ready(nil)) != want {
		t.Errorf("got %v and %v, and of the check %v; the API server has no tomato", errs, err, known.Ready(nil))
	}
	_, err = reference.NotReferenced[*v1alpha1.Topping](pizzasOf)(t.Context(), topping("tomato"))
	if !isRetry(err, http.StatusServiceUnavailable) || !strings.HasSuffix(err.Error(), "has stopped") || pizzasOf.Ready(nil) == nil {
		t.Errorf("got %v, and of the check %v", err, pizzasOf.Ready(nil))
	}
}

// An update answers for its new references alone. An old one may have a name that is impossible now, or lead to another
// namespace, because another user has written it, perhaps before the webhook was there.
func TestExists_Update(t *testing.T) {
	ofToppings := reference.Exists(target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), &live{}), func(p *v1beta1.Pizza) []reference.Ref {
		if p.Labels["optional"] != "" {
			return optional(toppingsOf)(p)
		}
		return toppingsOf(p)
	})
	ofSecrets := reference.Exists(target(t, reference.Namespaced(secrets), holding(), &live{}), secretsOf)
	labelled := func(p *v1beta1.Pizza, label string) *v1beta1.Pizza {
		p.Labels = map[string]string{label: "yes"}
		return p
	}
	const invalid = `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: `
	old := pizza("margherita", "vanished", "tomato")
	for name, c := range map[string]struct {
		check   func(context.Context, *v1beta1.Pizza) (field.ErrorList, error)
		request request
		want    string
	}{
		"a label, and another order": {ofToppings, request{old: old, pizza: labelled(pizza("margherita", "tomato", "vanished"), "eaten")}, "allowed"},
		"a new reference":            {ofToppings, request{old: old, pizza: pizza("margherita", "vanished", "nails")}, invalid + `spec.toppings[1].name: Not found: "nails"`},
		"a creation":                 {ofToppings, request{pizza: pizza("margherita", "tomato", "vanished")}, invalid + `spec.toppings[1].name: Not found: "vanished"`},
		"no longer optional":         {ofToppings, request{old: labelled(pizza("margherita", "nails"), "optional"), pizza: pizza("margherita", "nails")}, invalid + `spec.toppings[0].name: Not found: "nails"`},
		"an old impossible name":     {ofSecrets, request{old: pizza("margherita", "other/.."), pizza: pizza("margherita", "other/..")}, "allowed"},
		"an old other namespace":     {ofSecrets, request{old: pizza("margherita", "other/oven"), pizza: pizza("margherita", "other/oven")}, "allowed"},
		"a new other namespace": {ofSecrets, request{old: pizza("margherita", "other/oven"), pizza: pizza("margherita", "other/oven", "third/oven")},
			invalid + `spec.toppings[1].name: Forbidden: objects in namespace "default" may not name secrets in namespace "third"`},
	} {
		if got := ask(t, newHandler(t, admission.Validate(c.check)), c.request); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// toBeta converts pizzas to v1beta1 by their version alone; these have no toppings
// in v1alpha1.
type toBeta struct{ err error }

func (c toBeta) Convert(_ context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
	text := strings.ReplaceAll(string(object), v1alpha1.GroupVersion.String(), to.String())
	return []byte(strings.ReplaceAll(text, `["vanished"]`, `[{"name":"vanished"}]`)), c.err
}

func (toBeta) Versions(schema.GroupKind) []string { return []string{"v1alpha1", "v1beta1"} }

// The old object of an update in another version is converted.
func TestExists_UpdateInAnotherVersion(t *testing.T) {
	known := target(t, reference.ClusterScoped(toppings), reference.Unwatched(holding()), &live{})
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

// unstructuredToppings is toppingsOf for unstructured pizzas.
func unstructuredToppings(u *unstructured.Unstructured) (refs []reference.Ref) {
	toppings, _, _ := unstructured.NestedSlice(u.Object, "spec", "toppings")
	for i, t := range toppings {
		name, _ := t.(map[string]any)["name"].(string)
		refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i).Child("name"), Name: name})
	}
	return refs
}

// annotated returns a function that finds the reference in an annotation.
func annotated(key string) func(*metav1.PartialObjectMetadata) []reference.Ref {
	return func(m *metav1.PartialObjectMetadata) []reference.Ref {
		return []reference.Ref{{Path: field.NewPath("metadata", "annotations").Key(key), Name: m.Annotations[key]}}
	}
}

// Unstructured objects and metadata are checked through a handler, too.
func TestExists_UnstructuredAndMetadata(t *testing.T) {
	inMetadata := annotated("topping")
	known := target(t, reference.ClusterScoped(toppings), reference.Unwatched(holding()), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, unstructuredToppings)), admission.Validate(reference.Exists(known, inMetadata)))
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

// An object may name itself.
func TestExists_SelfReference(t *testing.T) {
	asked := &live{}
	check := reference.Exists(target(t, reference.Namespaced(pizzas), holding(), asked), toppingsOf)
	h := newHandler(t, admission.Validate(check))
	if got := ask(t, h, request{pizza: pizza("margherita", "margherita")}); got != "allowed" || len(asked.was()) > 0 {
		t.Errorf("%s after %v", got, asked.was())
	}
}

func outOfFlour() { panic("out of flour") }

// A panic in a goroutine would end the program.
func TestExists_PanicOfThePolicyIsUndecided(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), holding(), &live{})
	check := reference.Exists(known, secretsOf, reference.CrossNamespace(func(context.Context, string, cache.ObjectName) (bool, error) { outOfFlour(); return true, nil }))
	ctx, log := logcheck.Record(t.Context())
	_, err := check(ctx, pizza("x", "a/b"))
	const want = `spec.toppings[0].name: cannot check secrets "a/b": panic: out of flour`
	if !isFinal(err) || err.Error() != want || !strings.Contains(fmt.Sprint(log()), "reference_test.outOfFlour") {
		t.Errorf("got %v, and the log %q", err, log())
	}
}

// Faults are found when the program starts.
func TestNewTarget_Faults(t *testing.T) {
	if _, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(&events{fails: errors.New("informer stopped")}), (&live{}).get); err == nil || !strings.HasSuffix(err.Error(), ": informer stopped") {
		t.Errorf("got %v", err)
	}
}

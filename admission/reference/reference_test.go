package reference_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

var (
	pizzas   = schema.GroupResource{Group: "restaurant.programming-kubernetes.info", Resource: "pizzas"}
	toppings = schema.GroupResource{Group: "restaurant.programming-kubernetes.info", Resource: "toppings"}
	secrets  = schema.GroupResource{Resource: "secrets"}
)

// events is an informer whose events are sent by hand.
type events struct {
	objects  []any // that are there before the handlers
	handlers []cache.ResourceEventHandler
	synced   bool // the registration's
	stopped  bool
	fails    error
}

// holding returns an informer that has synced.
func holding(objects ...any) *events { return &events{objects: objects, synced: true} }

func (*events) HasSynced() bool                     { return true }
func (*events) HasSyncedChecker() cache.DoneChecker { return nil }
func (e *events) IsStopped() bool                   { return e.stopped }

func (e *events) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	e.handlers = append(e.handlers, h)
	for _, obj := range e.objects {
		h.OnAdd(obj, true)
	}
	return registration{e}, e.fails
}

// accept accepts an informer whose events are sent by hand.
func accept(informer reference.Informer) reference.Informer {
	if _, ok := informer.(*events); ok {
		return reference.Unwatched(informer)
	}
	return informer
}

type registration struct{ *events }

func (r registration) HasSynced() bool { return r.synced }

func (e *events) add(objects ...any) {
	for _, obj := range objects {
		for _, h := range e.handlers {
			h.OnAdd(obj, false)
		}
	}
}

func (e *events) update(obj any) {
	for _, h := range e.handlers {
		h.OnUpdate(nil, obj)
	}
}

func (e *events) delete(obj any) {
	for _, h := range e.handlers {
		h.OnDelete(obj)
	}
}

func topping(name string) *v1alpha1.Topping {
	return &v1alpha1.Topping{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Topping"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func pizza(name string, toppings ...string) *v1beta1.Pizza {
	p := &v1beta1.Pizza{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Pizza"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}
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

// optional returns the same references, as optional ones.
func optional(refs func(*v1beta1.Pizza) []reference.Ref) func(*v1beta1.Pizza) []reference.Ref {
	return func(p *v1beta1.Pizza) []reference.Ref {
		all := refs(p)
		for i := range all {
			all[i].Optional = true
		}
		return all
	}
}

// secretsOf takes the toppings for secrets, named namespace/name or name.
func secretsOf(p *v1beta1.Pizza) []reference.Ref {
	refs := toppingsOf(p)
	for i := range refs {
		if namespace, name, found := strings.Cut(refs[i].Name, "/"); found {
			refs[i].Namespace, refs[i].Name = namespace, name
		}
	}
	return refs
}

// live is a cluster that counts how often it is asked for a name. It has the names
// that begin with "new".
type live struct {
	mu    sync.Mutex
	asked map[string]int
}

func (l *live) get(_ context.Context, namespace, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = map[string]int{}
	}
	l.asked[cache.NewObjectName(namespace, name).String()]++
	switch {
	case strings.HasPrefix(name, "new"):
		return nil
	case name == "locked":
		return apierrors.NewForbidden(toppings, name, errors.New("RBAC"))
	case name == "unserved":
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", toppings, name, "404 page not found", 0, true)
	default:
		return apierrors.NewNotFound(toppings, name)
	}
}

func (l *live) was() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.asked)
}

func target(t testing.TB, resource reference.Resource, informer reference.Informer, l *live) *reference.Target {
	t.Helper()
	got, err := reference.NewTarget(resource, accept(informer), l.get)
	expect.NoError(t, err)
	return got
}

func messages(errs field.ErrorList) (all []string) {
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return all
}

// decides fails the test unless a check finds these errors in an object.
func decides[T any](t testing.TB, check func(context.Context, T) (field.ErrorList, error), object T, want ...string) {
	t.Helper()
	errs, err := check(t.Context(), object)
	if diff := cmp.Diff(want, messages(errs)); diff != "" || err != nil {
		t.Errorf("error %v, and (-want +got):\n%s", err, diff)
	}
}

// request is an admission request for a pizza.
type request struct {
	old, pizza any // runtime.Objects, or what is not quite one
	user       string
	groups     []string
	version    string // of the pizzas; v1beta1
}

// ask sends a request through a handler. It returns why the request is denied, or
// what happened instead.
func ask(t testing.TB, h http.Handler, r request) string {
	t.Helper()
	if r.version == "" {
		r.version = v1beta1.GroupVersion.Version
	}
	text := func(obj any) runtime.RawExtension {
		if obj == nil {
			return runtime.RawExtension{}
		}
		raw, err := json.Marshal(obj)
		expect.NoError(t, err)
		return runtime.RawExtension{Raw: raw}
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "u-1",
			Kind:      metav1.GroupVersionKind{Group: pizzas.Group, Version: r.version, Kind: "Pizza"},
			Resource:  metav1.GroupVersionResource{Group: pizzas.Group, Version: r.version, Resource: pizzas.Resource},
			Namespace: "default",
			Name:      "margherita",
			Operation: admissionv1.Update,
			UserInfo:  authenticationv1.UserInfo{Username: r.user, Groups: r.groups, UID: "42", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"kitchen"}}},
			Object:    text(r.pizza),
			OldObject: text(r.old),
		},
	}
	switch {
	case r.old == nil:
		review.Request.Operation = admissionv1.Create
	case r.pizza == nil:
		review.Request.Operation = admissionv1.Delete
	}
	body, err := json.Marshal(review)
	expect.NoError(t, err)
	post := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
	post.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, post)
	if w.Code != http.StatusOK {
		var status metav1.Status
		expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
		retry := ""
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			retry = fmt.Sprintf(", again in %d s", status.Details.RetryAfterSeconds)
		}
		return fmt.Sprintf("undecided, %d%s: %s", w.Code, retry, status.Message)
	}
	var answer admissionv1.AdmissionReview
	expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	if answer.Response.Allowed {
		return "allowed"
	}
	return answer.Response.Result.Message
}

// newHandler returns a handler for pizzas of version v1beta1.
func newHandler(t testing.TB, opts ...admission.Option) http.Handler {
	t.Helper()
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
	)
	expect.NoError(t, err)
	return admission.NewHandler(s, opts...)
}

// isRetry reports whether an error makes the API server try again in a second.
func isRetry(err error, code int32) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.ErrStatus.Code == code && status.ErrStatus.Details.RetryAfterSeconds == 1
}

// isFinal reports whether an error leaves a request undecided, and asking again would not
// help.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status)
}

func mustPanic(t testing.TB, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v == nil || fmt.Sprint(v) != want {
			t.Errorf("got a panic of %v, want %s", v, want)
		}
	}()
	f()
}

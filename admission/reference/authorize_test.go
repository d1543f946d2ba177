package reference_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
)

// reviews lets ada do everything, and others nothing.
type reviews struct {
	mu    sync.Mutex
	specs []authorizationv1.SubjectAccessReviewSpec
}

func (r *reviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.specs = append(r.specs, review.Spec)
	answer := &authorizationv1.SubjectAccessReview{}
	switch review.Spec.User {
	case "ada":
		answer.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "a role is missing"}
	case "unlucky":
		return nil, apierrors.NewForbidden(authorizationv1.Resource("subjectaccessreviews"), "", errors.New("RBAC"))
	case "undecided":
		answer.Status.EvaluationError = "the authorizer is down"
	case "banned":
		answer.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "no shoes", EvaluationError: "the authorizer is down"}
	}
	return answer, nil
}

// A user can name only objects that this user may read.
func TestAuthorize(t *testing.T) {
	for user, want := range map[string]string{
		"ada":       `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[1].name: Not found: "nails"`,
		"bob":       `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: [spec.toppings[0].name: Forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "default", spec.toppings[1].name: Forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "default"]`,
		"banned":    `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: [spec.toppings[0].name: Forbidden: User "banned" cannot get resource "secrets" in API group "" in the namespace "default": no shoes, spec.toppings[1].name: Forbidden: User "banned" cannot get resource "secrets" in API group "" in the namespace "default": no shoes]`,
		"unlucky":   `undecided, 500: Pizza default/margherita: spec.toppings[0].name: cannot find out whether user "unlucky" may get secrets "default/oven": subjectaccessreviews.authorization.k8s.io is forbidden: RBAC`,
		"undecided": `undecided, 500: Pizza default/margherita: spec.toppings[0].name: cannot find out whether user "undecided" may get secrets "default/oven": the authorizer is down`,
	} {
		asked := &live{}
		known := target(t, reference.Namespaced(secrets), holding(secret("default", "oven")), asked)
		h := newHandler(t, admission.Validate(reference.Exists(known, secretsOf, reference.Authorize((&reviews{}).Create, ""))))
		got := ask(t, h, request{pizza: pizza("margherita", "oven", "nails"), user: user})
		if got != want {
			t.Errorf("%s: got %s, want %s", user, got, want)
		}
		if user != "ada" && len(asked.was()) > 0 {
			t.Errorf("%s: what he may not read was looked up: %v", user, asked.was())
		}
	}
}

// A review names the user and the object.
func TestAuthorize_Review(t *testing.T) {
	r := &reviews{}
	known := target(t, reference.ClusterScoped(toppings), holding(topping("tomato")), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, toppingsOf, reference.Authorize(r.Create, "use"))))
	want := `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: spec.toppings[0].name: Forbidden: User "bob" cannot use resource "toppings" in API group "restaurant.programming-kubernetes.info" at the cluster scope`
	if got := ask(t, h, request{pizza: pizza("margherita", "tomato"), user: "bob", groups: []string{"guests"}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{{
		User: "bob", UID: "42", Groups: []string{"guests"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"kitchen"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "use", Group: toppings.Group, Resource: "toppings", Name: "tomato"},
	}}, r.specs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A user who only touches a label needs no permission for the references that were there.
func TestAuthorize_OldReferences(t *testing.T) {
	r := &reviews{}
	known := target(t, reference.Namespaced(secrets), holding(), &live{})
	h := newHandler(t, admission.Validate(reference.Exists(known, secretsOf, reference.Authorize(r.Create, ""))))
	old := pizza("margherita", "new")
	if got := ask(t, h, request{old: old, pizza: old, user: "bob"}); got != "allowed" || len(r.specs) > 0 {
		t.Errorf("%s after %v", got, r.specs)
	}
	if got := ask(t, h, request{old: old, pizza: pizza("margherita", "new", "new-one"), user: "bob"}); !strings.Contains(got, "spec.toppings[1].name: Forbidden: ") {
		t.Error(got)
	}
}

func TestAuthorize_WithoutARequest(t *testing.T) {
	known := target(t, reference.Namespaced(secrets), holding(), &live{})
	errs, err := reference.Exists(known, secretsOf, reference.Authorize((&reviews{}).Create, ""))(t.Context(), pizza("x", "new"))
	if errs != nil || !isFinal(err) || !strings.Contains(err.Error(), "the context has no admission request") {
		t.Errorf("got %v and %v", errs, err)
	}
}

// Package decision compares the decisions of schema/apiservertest's RBAC with those of a real API server.
package decision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
)

// Outcome is how many decisions were compared, how many allowed the request, and those that differ.
type Outcome struct {
	Decisions, Allowed int
	Differences        []string
}

// Run gives both servers the same random roles and bindings, and asks both for n decisions.
func Run(ctx context.Context, cp *controlplane.ControlPlane, n int, seed uint64) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := apiservertest.New(ctx, apiservertest.RBAC())
	if err != nil {
		return nil, err
	}
	var both [2]kubernetes.Interface
	for i, config := range []*rest.Config{cp.Config(), server.Config()} {
		config.QPS = -1
		if both[i], err = kubernetes.NewForConfig(config); err != nil {
			return nil, err
		}
	}
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	for _, client := range both {
		for _, name := range namespaces {
			if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
	}
	for i := range 60 {
		if err := g.createRole(ctx, both[:], i); err != nil {
			return nil, err
		}
	}
	for i := range 90 {
		if err := g.createBinding(ctx, both[:], i); err != nil {
			return nil, err
		}
	}
	if err := awaitLast(ctx, both[:]); err != nil {
		return nil, err
	}
	out := &Outcome{}
	specs := make(chan authorizationv1.SubjectAccessReviewSpec)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for spec := range specs {
				allowed, difference := ask(ctx, both, spec)
				mu.Lock()
				if out.Decisions++; allowed {
					out.Allowed++
				}
				if difference != "" {
					out.Differences = append(out.Differences, difference)
				}
				mu.Unlock()
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		specs <- g.request()
	}
	close(specs)
	workers.Wait()
	return out, ctx.Err()
}

// ask returns the decision of the real server, and how that of the other one differs.
func ask(ctx context.Context, both [2]kubernetes.Interface, spec authorizationv1.SubjectAccessReviewSpec) (allowed bool, difference string) {
	var answers [2]string
	for i, client := range both {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if answers[i] = fmt.Sprint(err); err == nil {
			answers[i] = fmt.Sprint(review.Status.Allowed, review.Status.Denied)
			allowed = allowed || i == 0 && review.Status.Allowed
		}
	}
	if answers[0] != answers[1] {
		difference = fmt.Sprintf("%s: kube-apiserver %s, offline %s", spec.String(), answers[0], answers[1])
	}
	return allowed, difference
}

// awaitLast waits until both servers, whose authorizers follow watches, know everything that was created.
func awaitLast(ctx context.Context, both []kubernetes.Interface) error {
	for _, client := range both {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "last"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "last"}},
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	// Each kind has a watch of its own.
	time.Sleep(2 * time.Second)
	spec := authorizationv1.SubjectAccessReviewSpec{User: "last", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, client := range both {
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				return false, err
			}
		}
		return true, nil
	})
}

var (
	namespaces = []string{"blue", "green", "red"}
	verbs      = []string{"get", "list", "watch", "create", "update", "patch", "delete", "escalate", "*"}
	groups     = []string{"", "apps", "example.com", "*"}
	resources  = []string{"pods", "pods/status", "pods/scale", "deployments", "deployments/scale", "*/scale", "pods/*", "*/*", "*"}
	names      = []string{"", "a", "b", "*"}
	urls       = []string{"/healthz", "/healthz/", "/healthz/a", "/healthz*", "/api/*", "/api", "/a", "*"}
	users      = []string{"ann", "bob", "system:serviceaccount:blue:sa", "system:serviceaccount:red:sa", "system:serviceaccount:blue:", "blue:sa"}
	teams      = []string{"dev", "ops", "system:serviceaccounts", "system:masters", "system:authenticated"}
)

type generator struct{ *rand.Rand }

func (g generator) one(from []string) string { return from[g.IntN(len(from))] }

// some returns up to two elements more than least.
func (g generator) some(from []string, least int) (all []string) {
	for range least + g.IntN(3) {
		all = append(all, g.one(from))
	}
	return all
}

func (g generator) rules(namespaced bool) (all []rbacv1.PolicyRule) {
	for range g.IntN(4) {
		rule := rbacv1.PolicyRule{Verbs: g.some(verbs, 1)}
		if !namespaced && g.IntN(4) == 0 {
			rule.NonResourceURLs = g.some(urls, 1)
		} else {
			rule.APIGroups, rule.Resources = g.some(groups, 1), g.some(resources, 1)
			if g.IntN(3) == 0 {
				rule.ResourceNames = g.some(names, 1)
			}
		}
		all = append(all, rule)
	}
	return all
}

// create creates an object on both servers.
func create[T any](both []kubernetes.Interface, on func(kubernetes.Interface) (T, error)) error {
	if _, err := on(both[0]); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	_, err := on(both[1])
	return err
}

func (g generator) createRole(ctx context.Context, both []kubernetes.Interface, i int) error {
	meta := metav1.ObjectMeta{Name: fmt.Sprint("role-", i%30)}
	if i < 30 {
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.rules(false)}
		return create(both, func(c kubernetes.Interface) (*rbacv1.ClusterRole, error) {
			return c.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		})
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: g.rules(true)}
	namespace := g.one(namespaces)
	return create(both, func(c kubernetes.Interface) (*rbacv1.Role, error) {
		return c.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{})
	})
}

func (g generator) createBinding(ctx context.Context, both []kubernetes.Interface, i int) error {
	var subjects []rbacv1.Subject
	for range g.IntN(3) {
		switch g.IntN(3) {
		case 0:
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: g.one(users)})
		case 1:
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g.one(teams[:2])})
		default:
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "sa", Namespace: g.one(namespaces)})
		}
	}
	meta := metav1.ObjectMeta{Name: fmt.Sprint("binding-", i)}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("role-", g.IntN(33))} // three do not exist
	if i < 20 {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
		return create(both, func(c kubernetes.Interface) (*rbacv1.ClusterRoleBinding, error) {
			return c.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		})
	}
	if g.IntN(2) == 0 {
		ref.Kind = "Role"
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
	namespace := g.one(namespaces)
	return create(both, func(c kubernetes.Interface) (*rbacv1.RoleBinding, error) {
		return c.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	})
}

// request returns what a user may want to do, which the vocabulary of the rules often allows.
func (g generator) request() authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: g.one(users)}
	if g.IntN(3) == 0 {
		spec.Groups = g.some(teams, 1)
	}
	if g.IntN(5) == 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: g.one(verbs), Path: g.one(urls)}
		return spec
	}
	in := &authorizationv1.ResourceAttributes{Verb: g.one(verbs), Group: g.one(groups), Resource: g.one([]string{"pods", "deployments", "*"}), Name: g.one(names)}
	in.Namespace = g.one(append(namespaces, ""))
	if g.IntN(3) == 0 {
		in.Subresource = g.one([]string{"status", "scale", "*"})
	}
	spec.ResourceAttributes = in
	return spec
}

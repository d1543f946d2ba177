package apiservertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	informers "k8s.io/client-go/informers/rbac/v1"
	listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// RBAC makes the server authorize requests by its Roles, ClusterRoles and bindings, as kube-apiserver does with
// --authorization-mode=RBAC. A change of these objects takes effect a moment later. The group system:masters, to which
// the user of [Server.Config] belongs, may do everything. Of kube-apiserver's default roles, cluster-admin,
// system:discovery, system:basic-user and system:public-info-viewer exist. Roles and bindings are not validated, and
// SelfSubjectRulesReviews are not served.
//
// To send requests as the service account of an operator, impersonate it:
//
//	config := s.Config()
//	config.Impersonate.UserName = "system:serviceaccount:pizza-system:pizza-operator"
//
// [Server.Access] reports which rules are missing, and which are unused.
func RBAC() Option {
	return func(o *options) { o.rbac = true }
}

// defaultRoles returns roles that each cluster has, and their bindings
// (kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
func defaultRoles() (all []runtime.Object) {
	probes := []string{"/livez", "/readyz", "/healthz", "/version", "/version/"}
	for name, role := range map[string]struct {
		groups []string
		rules  []rbacv1.PolicyRule
	}{
		"cluster-admin": {[]string{user.SystemPrivilegedGroup}, everything},
		"system:discovery": {[]string{user.AllAuthenticated}, []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, NonResourceURLs: append([]string{"/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"}, probes...)}}},
		"system:basic-user": {[]string{user.AllAuthenticated}, []rbacv1.PolicyRule{
			{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
			{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}}}},
		"system:public-info-viewer": {[]string{user.AllAuthenticated, user.AllUnauthenticated}, []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: probes}}},
	} {
		meta := metav1.ObjectMeta{Name: name}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
		for _, group := range role.groups {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
		}
		all = append(all, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.rules}, binding)
	}
	return all
}

// everything are the rules that allow all requests.
var everything = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}

// need is a rule that allows one request, in a namespace or in none.
type need struct {
	rule      rbacv1.PolicyRule
	namespace string
}

// needOf returns what allows a request and nothing else.
func needOf(a authorizer.Attributes) need {
	verbs := []string{a.GetVerb()}
	if !a.IsResourceRequest() {
		return need{rule: rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{a.GetPath()}}}
	}
	resource := a.GetResource()
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	// A rule may have an empty name, which allows requests without one.
	rule := rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{a.GetAPIGroup()}, Resources: []string{resource}, ResourceNames: []string{a.GetName()}}
	return need{rule, a.GetNamespace()}
}

// grant has the rules of a role that a binding gives to a user.
type grant struct {
	binding string // its name
	role    rbacv1.RoleRef
	// namespace is where the rules apply. If it is empty, they apply in all namespaces and to objects in none.
	namespace string
	rules     []rbacv1.PolicyRule
}

// rbacAuthorizer authorizes requests as kube-apiserver does (kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go), and
// remembers those of all users but administrators.
type rbacAuthorizer struct {
	roles           listers.RoleLister
	clusterRoles    listers.ClusterRoleLister
	bindings        listers.RoleBindingLister
	clusterBindings listers.ClusterRoleBindingLister

	mu    sync.Mutex
	users map[string]*userRequests
}

// userRequests are the requests of a user, with the groups of the last one.
type userRequests struct {
	user  user.Info
	needs map[string]need
}

func newAuthorizer(i informers.Interface) *rbacAuthorizer {
	return &rbacAuthorizer{
		roles: i.Roles().Lister(), clusterRoles: i.ClusterRoles().Lister(),
		bindings: i.RoleBindings().Lister(), clusterBindings: i.ClusterRoleBindings().Lister(),
		users: map[string]*userRequests{},
	}
}

func (r *rbacAuthorizer) authorizeAndRemember(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := r.authorize(ctx, a)
	r.remember(a.GetUser(), needOf(a))
	return decision, reason, err
}

// authorizeForPolicy remembers what an expression of a policy or webhook finds allowed, because it might refuse the request
// otherwise. It does not remember the rest, which the expression may want to be refused.
func (r *rbacAuthorizer) authorizeForPolicy(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := r.authorize(ctx, a)
	if decision == authorizer.DecisionAllow {
		r.remember(a.GetUser(), needOf(a))
	}
	return decision, reason, err
}

func (r *rbacAuthorizer) remember(u user.Info, n need) {
	if isAdmin(u) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[u.GetName()] == nil {
		r.users[u.GetName()] = &userRequests{needs: map[string]need{}}
	}
	r.users[u.GetName()].user = u
	r.users[u.GetName()].needs[fmt.Sprint(n)] = n
}

func (r *rbacAuthorizer) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if isAdmin(a.GetUser()) {
		return authorizer.DecisionAllow, "", nil
	}
	grants, err := r.grants(a.GetUser(), a.GetNamespace())
	needed := []rbacv1.PolicyRule{needOf(a).rule}
	for _, g := range grants {
		if ok, _ := validation.Covers(g.rules, needed); ok {
			kind := "RoleBinding"
			if g.namespace == "" {
				kind = "ClusterRoleBinding"
			}
			return authorizer.DecisionAllow, fmt.Sprintf("RBAC: allowed by %s %q of %s %q", kind, g.binding, g.role.Kind, g.role.Name), nil
		}
	}
	if err != nil {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func isAdmin(u user.Info) bool { return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) }

// grants returns what a user is granted in the cluster and in some namespaces, or in all without an argument. The error names the
// roles that bindings refer to and that do not exist.
func (r *rbacAuthorizer) grants(u user.Info, namespaces ...string) (all []grant, _ error) {
	var errs []error
	add := func(meta metav1.ObjectMeta, subjects []rbacv1.Subject, ref rbacv1.RoleRef) {
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return isSubject(u, s, meta.Namespace) }) {
			return
		}
		rules, err := r.rules(ref, meta.Namespace)
		if err != nil {
			errs = append(errs, err)
			return
		}
		all = append(all, grant{meta.Name, ref, meta.Namespace, rules})
	}
	clusterBindings, err := r.clusterBindings.List(labels.Everything())
	errs = append(errs, err)
	for _, b := range clusterBindings {
		add(b.ObjectMeta, b.Subjects, b.RoleRef)
	}
	bindings, err := r.bindings.List(labels.Everything())
	errs = append(errs, err)
	for _, b := range bindings {
		if len(namespaces) == 0 || slices.Contains(namespaces, b.Namespace) {
			add(b.ObjectMeta, b.Subjects, b.RoleRef)
		}
	}
	return all, errors.Join(errs...)
}

// isSubject reports whether a binding in a namespace, or in none, is for a user
// (kubernetes/pkg/registry/rbac/validation/rule.go, appliesToUser).
func isSubject(u user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return u.GetName() == s.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && serviceaccount.MatchesUsername(namespace, s.Name, u.GetName())
	}
	return false
}

// rules returns the rules of the role to which a binding in a namespace refers. An aggregated ClusterRole has the
// rules that kube-controller-manager would give it (clusterroleaggregation_controller.go).
func (r *rbacAuthorizer) rules(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	switch ref.Kind {
	case "Role":
		role, err := r.roles.Roles(namespace).Get(ref.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	case "ClusterRole":
		role, err := r.clusterRoles.Get(ref.Name)
		if err != nil {
			return nil, err
		}
		return r.aggregated(role, map[string]bool{}), nil
	}
	return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
}

// aggregated returns the rules of a ClusterRole, and of those that it aggregates, except those that were seen before.
func (r *rbacAuthorizer) aggregated(role *rbacv1.ClusterRole, seen map[string]bool) []rbacv1.PolicyRule {
	if seen[role.Name] {
		return nil
	}
	seen[role.Name] = true
	if role.AggregationRule == nil {
		return role.Rules
	}
	var all []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return role.Rules // the controller does not change the role
		}
		selected, _ := r.clusterRoles.List(selector) // from memory
		for _, other := range selected {
			all = append(all, r.aggregated(other, seen)...)
		}
	}
	return all
}

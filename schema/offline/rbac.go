package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// RBAC makes the server authorize requests by its Roles, ClusterRoles and bindings, as kube-apiserver does with
// --authorization-mode=RBAC. A change of these objects takes effect at the next request. The group system:masters,
// to which the user of [Server.Config] belongs, may do everything. Of kube-apiserver's default roles, cluster-admin,
// system:discovery, system:basic-user and system:public-info-viewer exist. Writing Roles and bindings is not restricted to
// rules that the writer has.
//
// To send requests as the service account of an operator, impersonate it:
//
//	config := s.Config()
//	config.Impersonate.UserName = "system:serviceaccount:pizza-system:pizza-operator"
//
// [Server.Access] reports which rules such a user lacked, and which it did not use.
func RBAC() Option {
	return func(o *options) error {
		o.rbac = true
		return Objects(defaultRoles()...)(o)
	}
}

// defaultRoles returns roles that each cluster has, and their bindings
// (kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
func defaultRoles() (all []runtime.Object) {
	probes := []string{"/livez", "/readyz", "/healthz", "/version", "/version/"}
	for name, role := range map[string]struct {
		groups []string
		rules  []rbacv1.PolicyRule
	}{
		"cluster-admin": {[]string{user.SystemPrivilegedGroup}, []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}},
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

// access is what a request asks for.
type access struct {
	verb, group, resource, name, namespace string // resource may have a subresource
	path                                   string // of a request for no resource
}

// rule returns the rule that allows this and nothing else.
func (a access) rule() rbacv1.PolicyRule {
	if a.path != "" {
		return rbacv1.PolicyRule{Verbs: []string{a.verb}, NonResourceURLs: []string{a.path}}
	}
	// A rule may have an empty name, which allows requests without one.
	return rbacv1.PolicyRule{Verbs: []string{a.verb}, APIGroups: []string{a.group}, Resources: []string{a.resource}, ResourceNames: []string{a.name}}
}

// grant has the rules that a binding gives to a user: in a namespace, or in all of them and for what is in
// none.
type grant struct {
	role      rbacv1.RoleRef
	binding   string
	namespace string
	rules     []rbacv1.PolicyRule
}

// roles authorizes requests by the objects that a server has, and remembers what they ask for.
type roles struct {
	server *Server
	mu     sync.Mutex
	asked  map[string]map[access]bool // by user, whether it was allowed
}

// authorize answers a request, and remembers it.
func (r *roles) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := r.review(ctx, a)
	r.mu.Lock()
	defer r.mu.Unlock()
	name := a.GetUser().GetName()
	if r.asked[name] == nil {
		r.asked[name] = map[access]bool{}
	}
	r.asked[name][accessOf(a)] = decision == authorizer.DecisionAllow
	return decision, reason, err
}

// review answers as kube-apiserver does (kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go).
func (r *roles) review(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	grants, err := r.grants(ctx, a.GetUser(), a.GetNamespace())
	needed := []rbacv1.PolicyRule{accessOf(a).rule()}
	for _, g := range grants {
		if ok, _ := validation.Covers(g.rules, needed); ok {
			return authorizer.DecisionAllow, fmt.Sprintf("RBAC: allowed by %s of %s %q", g.binding, g.role.Kind, g.role.Name), nil
		}
	}
	if err != nil {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func accessOf(a authorizer.Attributes) access {
	if !a.IsResourceRequest() {
		return access{verb: a.GetVerb(), path: a.GetPath()}
	}
	resource := a.GetResource()
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return access{verb: a.GetVerb(), group: a.GetAPIGroup(), resource: resource, name: a.GetName(), namespace: a.GetNamespace()}
}

// grants returns what a user is granted in a namespace, or only in the cluster if it is empty. The error names the
// roles that bindings refer to and that do not exist.
func (r *roles) grants(ctx context.Context, u user.Info, namespace string) (all []grant, _ error) {
	var errs []error
	add := func(kind, name, namespace string, subjects []rbacv1.Subject, ref rbacv1.RoleRef) {
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return isSubject(u, s, namespace) }) {
			return
		}
		rules, err := r.rules(ctx, ref, namespace)
		if err != nil {
			errs = append(errs, err)
			return
		}
		all = append(all, grant{ref, fmt.Sprintf("%s %q", kind, name), namespace, rules})
	}
	bindings, err := list[*rbacv1.ClusterRoleBindingList](ctx, r.server, "ClusterRoleBinding", "")
	if err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		add("ClusterRoleBinding", b.Name, "", b.Subjects, b.RoleRef)
	}
	if namespace != "" {
		bindings, err := list[*rbacv1.RoleBindingList](ctx, r.server, "RoleBinding", namespace)
		if err != nil {
			return nil, err
		}
		for _, b := range bindings.Items {
			add("RoleBinding", b.Name+"/"+b.Namespace, namespace, b.Subjects, b.RoleRef)
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

// rules returns the rules of the role to which a binding refers.
func (r *roles) rules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	store := r.server.builtins[rbacv1.SchemeGroupVersion.WithKind(ref.Kind)]
	if store == nil || ref.Kind != "Role" && ref.Kind != "ClusterRole" {
		return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	obj, err := store.Get(genericapirequest.WithNamespace(ctx, namespace), ref.Name, &metav1.GetOptions{})
	switch role := obj.(type) {
	case *rbacv1.Role:
		return role.Rules, err
	case *rbacv1.ClusterRole:
		return role.Rules, err
	}
	return nil, err
}

// list returns all objects of a kind of RBAC in a namespace.
func list[T any](ctx context.Context, s *Server, kind, namespace string) (all T, _ error) {
	store := s.builtins[rbacv1.SchemeGroupVersion.WithKind(kind)]
	if store == nil {
		return all, apierrors.NewInternalError(fmt.Errorf("%s is defined by a CRD: RBAC needs the built-in kind", kind))
	}
	obj, err := store.List(genericapirequest.WithNamespace(ctx, namespace), &internalversion.ListOptions{})
	if err != nil {
		return all, err
	}
	return obj.(T), nil
}

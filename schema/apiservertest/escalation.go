package apiservertest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// escalation refuses Roles and bindings that grant what the writer may not do, unless the writer may escalate
// the role, or bind it (kubernetes/pkg/registry/rbac, policybased/storage.go of each kind).
type escalation struct{ *Server }

func (escalation) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

func (e escalation) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	u := a.GetUserInfo()
	if a.GetResource().Group != rbacv1.GroupName || isAdmin(u) || a.GetOperation() == admission.Update && equalButReferences(a.GetObject(), a.GetOldObject()) {
		return nil
	}
	current, err := e.current(ctx)
	if err != nil {
		return err
	}
	attributes := authorizer.AttributesRecord{
		User: u, Verb: "escalate", APIGroup: rbacv1.GroupName, Resource: a.GetResource().Resource, Namespace: a.GetNamespace(), ResourceRequest: true,
	}
	if info, ok := genericapirequest.RequestInfoFrom(ctx); ok {
		attributes.Name = info.Name // which a POST does not have
	}
	bind := func(ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
		attributes.Verb, attributes.Resource, attributes.Name = "bind", strings.ToLower(ref.Kind)+"s", ref.Name
		return current.rules(ref, a.GetNamespace())
	}
	var rules []rbacv1.PolicyRule
	switch obj := a.GetObject().(type) {
	case *rbacv1.Role:
		rules = obj.Rules
	case *rbacv1.ClusterRole:
		rules = obj.Rules
		if old, _ := a.GetOldObject().(*rbacv1.ClusterRole); aggregates(obj) || aggregates(old) { // what it grants is unknown
			rules = slices.Concat(rules, everything)
		}
	case *rbacv1.RoleBinding:
		rules, err = bind(obj.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		rules, err = bind(obj.RoleRef)
	}
	if decision, _, _ := e.rbac.authorize(ctx, attributes); decision == authorizer.DecisionAllow {
		e.rbac.remember(u, needOf(attributes))
		return nil
	}
	if err != nil {
		return err
	}
	grants, _ := current.grants(u, a.GetNamespace())
	var held []rbacv1.PolicyRule
	for _, g := range grants {
		held = append(held, g.rules...)
	}
	ok, missing := validation.Covers(held, rules)
	for _, rule := range rules {
		for _, one := range validation.BreakdownRule(rule) {
			e.rbac.remember(u, need{one, a.GetNamespace()})
		}
	}
	if ok {
		return nil
	}
	var lines []string
	for _, rule := range joined(missing) {
		lines = append(lines, compact(rule))
	}
	return admission.NewForbidden(a, fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", u.GetName(), u.GetGroups(), strings.Join(lines, "\n")))
}

// current returns what is stored now, because the informers may not know a role yet that the same client has just created.
func (e escalation) current(ctx context.Context) (*rbacAuthorizer, error) {
	stored := map[string]cache.Indexer{}
	for _, kind := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
		stored[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		list, err := e.builtins[rbacv1.SchemeGroupVersion.WithKind(kind)].List(genericapirequest.WithNamespace(ctx, metav1.NamespaceAll), nil)
		if err == nil {
			err = meta.EachListItem(list, func(obj runtime.Object) error { return stored[kind].Add(obj) })
		}
		if err != nil {
			return nil, err
		}
	}
	return &rbacAuthorizer{
		roles: listers.NewRoleLister(stored["Role"]), clusterRoles: listers.NewClusterRoleLister(stored["ClusterRole"]),
		bindings: listers.NewRoleBindingLister(stored["RoleBinding"]), clusterBindings: listers.NewClusterRoleBindingLister(stored["ClusterRoleBinding"]),
	}, nil
}

func aggregates(role *rbacv1.ClusterRole) bool {
	return role != nil && role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

// equalButReferences reports whether two objects differ at most in what the garbage collector changes
// (kubernetes/pkg/registry/rbac/helpers.go, IsOnlyMutatingGCFields).
func equalButReferences(a, b runtime.Object) bool {
	b = b.DeepCopyObject()
	b.GetObjectKind().SetGroupVersionKind(a.GetObjectKind().GroupVersionKind())
	from, to := a.(metav1.Object), b.(metav1.Object)
	to.SetFinalizers(from.GetFinalizers())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetManagedFields(from.GetManagedFields())
	return apiequality.Semantic.DeepEqual(a, b)
}

// compact writes a rule as kube-apiserver does (kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go, CompactString).
func compact(r rbacv1.PolicyRule) string {
	var parts []string
	for _, f := range []struct {
		name   string
		values []string
	}{{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs}, {"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs}} {
		if len(f.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", f.name, f.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

package authority

import rbacv1 "k8s.io/api/rbac/v1"

// PolicyRules returns the least that an authority needs for the Secret of a name: the rules of
// a Role in its namespace. RBAC knows no name yet when an object is created; a watch of one
// object by the field selector metadata.name is authorized with that name
// (apiserver/pkg/endpoints/request/requestinfo.go).
func PolicyRules(secret string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update", "watch"}},
	}
}

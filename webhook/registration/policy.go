package registration

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PolicyRules returns the least that [Webhooks.Inject] needs: the rules of a ClusterRole, limited
// to the objects by their names. A watch of one object by the field selector metadata.name is
// authorized with that name (apiserver/pkg/endpoints/request/requestinfo.go).
//
// It lists where the API server cannot stream a list.
//
// A configuration without webhooks of its kind is among them, and so is a definition of several
// versions that is not converted: other releases may have some.
func (w *Webhooks) PolicyRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, o := range w.objects {
		if n := len(rules); n == 0 || rules[n-1].APIGroups[0] != o.resource.Group {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"list", "watch", "update"}, APIGroups: []string{o.resource.Group}})
		}
		rule := &rules[len(rules)-1]
		if !slices.Contains(rule.Resources, o.resource.Resource) {
			rule.Resources = append(rule.Resources, o.resource.Resource)
		}
		if !slices.Contains(rule.ResourceNames, o.name) {
			rule.ResourceNames = append(rule.ResourceNames, o.name)
		}
	}
	return rules
}

package registration

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PolicyRules returns the least that [Webhooks.Reconcile] needs: the rules of a ClusterRole,
// limited to the objects by their names. A watch of one object by the field selector
// metadata.name is authorized with that name (apiserver/pkg/endpoints/request/requestinfo.go),
// and so is what a server-side apply creates (apiserver/pkg/endpoints/handlers/patch.go). The
// slice is the caller's.
//
// A configuration without webhooks of its kind is watched too, and so is a definition of
// several versions that is not converted: a release that had some may have left them behind,
// and then nobody serves what they ask for.
func (w *Webhooks) PolicyRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, o := range w.objects {
		verbs := []string{"list", "watch"}
		if !o.isDefinition() || !o.empty {
			verbs = append(verbs, "patch")
		}
		if !o.isDefinition() && !o.empty {
			verbs = append(verbs, "create")
		}
		same := func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == o.resource.Group && slices.Equal(r.Verbs, verbs) &&
				(slices.Equal(r.ResourceNames, []string{o.name}) || slices.Equal(r.Resources, []string{o.resource.Resource}))
		}
		i := slices.IndexFunc(rules, same)
		switch {
		case i < 0:
			rules = append(rules, rbacv1.PolicyRule{
				APIGroups:     []string{o.resource.Group},
				Resources:     []string{o.resource.Resource},
				ResourceNames: []string{o.name},
				Verbs:         verbs,
			})
		case slices.Contains(rules[i].Resources, o.resource.Resource):
			rules[i].ResourceNames = append(rules[i].ResourceNames, o.name)
		default:
			rules[i].Resources = append(rules[i].Resources, o.resource.Resource)
		}
	}
	return rules
}

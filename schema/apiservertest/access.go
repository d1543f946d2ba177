package apiservertest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

// Access compares what the requests of a user needed with the rules of the user's roles. A watch needs list as well,
// because informers list where the server does not send initial events, as before Kubernetes 1.34.
type Access struct {
	// Missing has the rules that requests needed and that the user is not granted now, without resourceNames: for a Role
	// if the user has a RoleBinding in the namespace of the request, otherwise for a ClusterRole. After a refused
	// request, the client may not have sent others.
	Missing []Role
	// Unused has the granted rules that no request needed, one for each verb, resource and name, as far as they cannot
	// be joined. If several rules allow a request, it needs the narrowest one. The subresource finalizers is never
	// unused: clusters that enforce permissions on owner references need it. A rule is used, too, if an expression of a
	// policy or webhook has found that it allows something.
	Unused []Role
	// Sufficient has, for each role, the rules that were needed. A wildcard is replaced by what it was used for.
	Sufficient []Role
}

// Role is a Role or ClusterRole with some of its rules. The name of a new role is empty.
type Role struct {
	Kind, Namespace, Name string
	Rules                 []rbacv1.PolicyRule
}

// String returns YAML documents, each with a comment.
func (a Access) String() string {
	var text strings.Builder
	for _, part := range []struct {
		comment string
		roles   []Role
	}{{"missing", a.Missing}, {"unused", a.Unused}, {"sufficient", a.Sufficient}} {
		for _, r := range part.roles {
			metadata := map[string]any{"name": r.Name}
			if r.Namespace != "" {
				metadata["namespace"] = r.Namespace
			}
			manifest, _ := yaml.Marshal(map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": r.Kind, "metadata": metadata, "rules": r.Rules}) // text has an encoding
			fmt.Fprintf(&text, "---\n# %s\n%s", part.comment, manifest)
		}
	}
	return text.String()
}

// Access returns what the requests that a user has sent needed, compared with what the user is granted now. The name
// is that of a user, such as system:serviceaccount:namespace:name. The default roles are left out. Access returns an
// error if the user has sent no request, or if the server does not have the option [RBAC].
func (s *Server) Access(name string) (Access, error) {
	if s.rbac == nil {
		return Access{}, errors.New("apiservertest: Access needs a server with the option RBAC")
	}
	u, needs := s.rbac.sent(name)
	if u == nil {
		return Access{}, fmt.Errorf("apiservertest: user %q has sent no request", name)
	}
	grants, _ := s.rbac.grants(u) // roles that do not exist grant nothing
	granted := grantedRules(grants)
	missing, unused, sufficient := roleSet{}, roleSet{}, roleSet{}
	for _, n := range needs {
		needed := n.rule
		if i := slices.IndexFunc(granted, func(g *grantedRule) bool { return g.covers(n) }); i >= 0 {
			g := granted[i]
			g.used = true
			needed.ResourceNames = g.rule.ResourceNames
			sufficient.add(g.role, needed)
		} else {
			role := roleKey{kind: "ClusterRole"}
			if slices.ContainsFunc(grants, func(g grant) bool { return g.namespace != "" && g.namespace == n.namespace }) {
				role = roleKey{kind: "Role", namespace: n.namespace}
			}
			needed.ResourceNames = nil
			missing.add(role, needed)
		}
	}
	for _, g := range granted {
		switch {
		case len(g.rule.Resources) > 0 && strings.HasSuffix(g.rule.Resources[0], "/finalizers"):
			sufficient.add(g.role, g.rule)
		case !g.used:
			unused.add(g.role, g.rule)
		}
	}
	everywhere := missing[roleKey{kind: "ClusterRole"}]
	for role, rules := range missing {
		if role.namespace != "" {
			_, missing[role] = validation.Covers(everywhere, rules)
		}
	}
	return Access{Missing: missing.list(), Unused: unused.list(), Sufficient: sufficient.list()}, nil
}

// sent returns a user, or nil, and what the requests that the user has sent needed. A watch is a list, too.
func (r *rbacAuthorizer) sent(name string) (u user.Info, needs []need) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.users[name]
	if of == nil {
		return nil, nil
	}
	for _, n := range of.needs {
		needs = append(needs, n)
		if n.rule.Verbs[0] == "watch" {
			n.rule.Verbs = []string{"list"}
			needs = append(needs, n)
		}
	}
	return of.user, needs
}

// roleKey is the kind, namespace and name of a role.
type roleKey struct{ kind, namespace, name string }

// grantedRule is a rule of one verb, resource and name.
type grantedRule struct {
	role       roleKey
	namespaces []string // where it applies; an empty one is everywhere
	rule       rbacv1.PolicyRule
	used       bool
}

// grantedRules returns the rules of a user, the narrowest first.
func grantedRules(grants []grant) (all []*grantedRule) {
	by := map[string]*grantedRule{}
	for _, g := range grants {
		role := roleKey{g.role.Kind, g.namespace, g.role.Name}
		if g.role.Kind == "ClusterRole" {
			role.namespace = ""
			if slices.Contains([]string{"system:discovery", "system:basic-user", "system:public-info-viewer"}, g.role.Name) {
				role = roleKey{}
			}
		}
		for _, rule := range g.rules {
			for _, one := range validation.BreakdownRule(rule) {
				key := fmt.Sprint(role, one.String())
				if by[key] == nil {
					by[key] = &grantedRule{role: role, rule: one}
				}
				by[key].namespaces = append(by[key].namespaces, g.namespace)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		all = append(all, by[key])
	}
	slices.SortStableFunc(all, func(a, b *grantedRule) int { return cmp.Compare(a.width(), b.width()) })
	return all
}

// width is greater for rules that allow more.
func (g *grantedRule) width() (width int) {
	for _, element := range slices.Concat(g.rule.Verbs, g.rule.APIGroups, g.rule.Resources, g.rule.NonResourceURLs) {
		width += 2 * strings.Count(element, "*")
	}
	if len(g.rule.ResourceNames) == 0 {
		width++
	}
	if slices.Contains(g.namespaces, "") {
		width++
	}
	return width
}

// covers reports whether the rule allows what a request needs.
func (g *grantedRule) covers(n need) bool {
	if !slices.Contains(g.namespaces, "") && !slices.Contains(g.namespaces, n.namespace) {
		return false
	}
	covers, _ := validation.Covers([]rbacv1.PolicyRule{g.rule}, []rbacv1.PolicyRule{n.rule})
	return covers
}

// roleSet has rules by role.
type roleSet map[roleKey][]rbacv1.PolicyRule

// add adds a rule, unless it is one of a default role.
func (s roleSet) add(role roleKey, rule rbacv1.PolicyRule) {
	if role.kind != "" {
		s[role] = append(s[role], rule)
	}
}

func (s roleSet) list() (all []Role) {
	for role, rules := range s {
		if len(rules) > 0 {
			all = append(all, Role{role.kind, role.namespace, role.name, joined(rules)})
		}
	}
	slices.SortFunc(all, func(a, b Role) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// joined returns fewer rules that allow the same: rules that differ in one field become one rule.
func joined(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, field := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
	} {
		by := map[string]*rbacv1.PolicyRule{}
		for _, rule := range rules {
			values := *field(&rule)
			*field(&rule) = nil
			key := fmt.Sprint(rule.String(), len(values) == 0) // no value is any value
			if by[key] == nil {
				by[key] = rule.DeepCopy()
			}
			*field(by[key]) = append(*field(by[key]), values...)
		}
		rules = nil
		for _, rule := range by {
			slices.Sort(*field(rule))
			*field(rule) = slices.Compact(*field(rule))
			rules = append(rules, *rule)
		}
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.NonResourceURLs, b.NonResourceURLs),
			slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs))
	})
	return rules
}

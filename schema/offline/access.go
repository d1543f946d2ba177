package offline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

// Access compares what the requests of a user needed with the rules that the user has.
type Access struct {
	// Refused has the rules that the refused requests needed. They belong to a Role in the namespace,
	// or to a ClusterRole if the namespace is empty.
	Refused []Rules
	// Unused has the rules of the user's roles that no request needed. A rule with several verbs, resources
	// or names is split, and a rule that another one repeats is unused.
	Unused []Rules
	// Sufficient has, for each role, the least rules with which the same requests would be allowed. A wildcard is
	// replaced by what it was used for.
	Sufficient []Rules
}

// Rules are rules of one role.
type Rules struct {
	// Role is the kind and name of an existing role, such as ClusterRole "pizza-operator", or empty.
	Role string
	// Namespace is where the rules apply, or empty for all namespaces and for objects in none.
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// String returns YAML, with comments, that can be pasted into roles.
func (a Access) String() string {
	var text strings.Builder
	for _, part := range []struct {
		what string
		list []Rules
	}{{"missing", a.Refused}, {"not needed", a.Unused}, {"sufficient", a.Sufficient}} {
		for _, r := range part.list {
			fmt.Fprintf(&text, "# %s: %s", cmp.Or(r.Role, "all roles"), part.what)
			if r.Namespace != "" {
				fmt.Fprintf(&text, ", in namespace %s", r.Namespace)
			}
			rules, _ := yaml.Marshal(map[string]any{"rules": r.Rules}) // strings always have an encoding
			fmt.Fprintf(&text, "\n%s", rules)
		}
	}
	return text.String()
}

// Access returns what the requests that a user sent so far needed, compared with what the bindings grant the
// user now: the name of a user, such as system:serviceaccount:namespace:name. The server must have the option [RBAC].
// The default roles, which all users have, are left out.
func (s *Server) Access(ctx context.Context, name string) (Access, error) {
	u := &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		u.Groups = append(u.Groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	s.roles.mu.Lock()
	asked := maps.Clone(s.roles.asked[name])
	s.roles.mu.Unlock()
	grants, err := s.roles.allGrants(ctx, u)
	if err != nil {
		return Access{}, fmt.Errorf("offline: the access of %s: %w", name, err)
	}
	refused, unused, sufficient := ruleSet{}, ruleSet{}, ruleSet{}
	var atoms []*atom
	for _, g := range grants {
		for _, rule := range g.rules {
			for _, one := range validation.BreakdownRule(rule) {
				atoms = append(atoms, &atom{grant: g, rule: one})
			}
		}
	}
	slices.SortStableFunc(atoms, func(a, b *atom) int { return cmp.Compare(a.width(), b.width()) })
	for ask, allowed := range asked {
		needed := ask.rule()
		at := slices.IndexFunc(atoms, func(a *atom) bool {
			covers, _ := validation.Covers([]rbacv1.PolicyRule{a.rule}, []rbacv1.PolicyRule{needed})
			return covers && (a.grant.namespace == "" || a.grant.namespace == ask.namespace)
		})
		if at >= 0 {
			a := atoms[at]
			a.used = true
			if needed.ResourceNames = a.rule.ResourceNames; !a.grant.isDefault() {
				sufficient.add(a.grant, needed)
			}
		} else if !allowed {
			needed.ResourceNames = nil
			scope := grant{}
			if slices.ContainsFunc(grants, func(g grant) bool { return g.namespace != "" && g.namespace == ask.namespace }) {
				scope.namespace = ask.namespace
			}
			refused.add(scope, needed)
		}
	}
	for _, a := range atoms {
		if !a.used && !a.grant.isDefault() {
			unused.add(a.grant, a.rule)
		}
	}
	return Access{Refused: refused.list(), Unused: unused.list(), Sufficient: sufficient.list()}, nil
}

// allGrants returns what a user is granted anywhere.
func (r *roles) allGrants(ctx context.Context, u user.Info) ([]grant, error) {
	bindings, err := list[*rbacv1.RoleBindingList](ctx, r.server, "RoleBinding", "")
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for _, b := range bindings.Items {
		namespaces[b.Namespace] = true
	}
	all, err := r.grants(ctx, u, "")
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		var local []grant
		local, err = r.grants(ctx, u, namespace)
		all = append(all, slices.DeleteFunc(local, func(g grant) bool { return g.namespace == "" })...)
	}
	return all, err
}

// isDefault reports whether the role is one that all users have.
func (g grant) isDefault() bool {
	return g.role.Kind == "ClusterRole" && slices.Contains([]string{"system:discovery", "system:basic-user", "system:public-info-viewer"}, g.role.Name)
}

// atom is a rule of one verb, resource and name.
type atom struct {
	grant grant
	rule  rbacv1.PolicyRule
	used  bool
}

// width is greater for rules that allow more. A request uses the narrowest rule that allows it.
func (a *atom) width() (width int) {
	for _, element := range slices.Concat(a.rule.Verbs, a.rule.APIGroups, a.rule.Resources, a.rule.NonResourceURLs) {
		width += 2 * strings.Count(element, "*")
	}
	if len(a.rule.ResourceNames) == 0 {
		width++
	}
	if a.grant.namespace == "" {
		width++
	}
	return width
}

// ruleSet has rules by role and namespace.
type ruleSet map[[2]string][]rbacv1.PolicyRule

func (s ruleSet) add(g grant, rule rbacv1.PolicyRule) {
	role := ""
	if g.role.Name != "" {
		role = fmt.Sprintf("%s %q", g.role.Kind, g.role.Name)
	}
	s[[2]string{role, g.namespace}] = append(s[[2]string{role, g.namespace}], rule)
}

func (s ruleSet) list() (all []Rules) {
	for _, key := range slices.SortedFunc(maps.Keys(s), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		all = append(all, Rules{Role: key[0], Namespace: key[1], Rules: joined(s[key])})
	}
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
		for _, key := range slices.Sorted(maps.Keys(by)) {
			slices.Sort(*field(by[key]))
			*field(by[key]) = slices.Compact(*field(by[key]))
			rules = append(rules, *by[key])
		}
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.NonResourceURLs, b.NonResourceURLs),
			slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return rules
}

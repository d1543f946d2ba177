package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/handlerinfo"
)

// requests are those for one resource in one version.
type requests struct {
	group, resource, version string
	scope                    admissionregistrationv1.ScopeType
}

// rules returns the rules for the functions of a handler: as few as can say exactly that, and
// always in the same order.
func (s *settings) rules(functions []handlerinfo.Function, policy admissionregistrationv1.MatchPolicyType) (rules []admissionregistrationv1.RuleWithOperations, faults []error) {
	operations := map[requests][]string{}
	for _, f := range functions {
		for _, op := range f.Operations {
			one := f
			one.Operations = []string{op}
			if f.Versions == nil && policy == admissionregistrationv1.Equivalent {
				one.Versions = versionsBeside(one, functions)
			}
			all, err := s.requests(one)
			if err != nil {
				faults = append(faults, err)
				break // it is the same for the other operations
			}
			for _, r := range all {
				operations[r] = append(operations[r], op)
			}
		}
	}
	return merge(operations), faults
}

// versionsBeside returns the versions in which other functions want the objects for which a
// function of every version is called; nil if there are no such functions. A rule for another
// version would bring the function requests in that version, instead of in one of these to
// which the API server converts them (matchPolicy Equivalent), and the others would not be
// called: GetMatchKind in apiserver/pkg/admission/plugin/webhook/matchconditions and
// generic/webhook.go prefers a rule that matches exactly.
func versionsBeside(f handlerinfo.Function, functions []handlerinfo.Function) (versions []string) {
	for _, other := range functions {
		if other.Kind != f.Kind || other.Subresource != f.Subresource || !slices.Contains(other.Operations, f.Operations[0]) {
			continue
		}
		for _, v := range other.Versions {
			if !slices.Contains(versions, v) {
				versions = append(versions, v)
			}
		}
	}
	return versions
}

// requests returns for which ones a function is called.
func (s *settings) requests(f handlerinfo.Function) ([]requests, error) {
	if f.Kind.Empty() {
		return nil, fmt.Errorf("a function of every kind does not say for which: use ForKind of package admission, or give Rules")
	}
	d := s.definition(f.Kind)
	if d == nil {
		return builtIn(f)
	}
	versions := d.served()
	if f.Versions != nil {
		versions = slices.DeleteFunc(versions, func(v string) bool { return !slices.Contains(f.Versions, v) })
		if len(versions) == 0 {
			return nil, fmt.Errorf("a function is for %s of version %s, which %s does not serve", f.Kind, strings.Join(f.Versions, ", "), d)
		}
	}
	resource := d.Spec.Names.Plural
	switch f.Subresource {
	case "":
	case "status":
		resource += "/status"
		versions = slices.DeleteFunc(versions, func(v string) bool { return !d.hasStatus(v) })
		if len(versions) == 0 {
			return nil, fmt.Errorf("a function is for the subresource status of %s, which %s does not have", f.Kind, d)
		}
	default:
		return nil, fmt.Errorf("a function is for the subresource %s, and its objects are of kind %s: they can be no such objects", f.Subresource, f.Kind)
	}
	var all []requests
	for _, v := range versions {
		all = append(all, requests{f.Kind.Group, resource, v, admissionregistrationv1.ScopeType(d.Spec.Scope)})
	}
	return all, nil
}

// builtIn returns the requests for a kind without a definition.
func builtIn(f handlerinfo.Function) ([]requests, error) {
	if strings.Contains(f.Kind.Group, ".") && !strings.HasSuffix(f.Kind.Group, ".k8s.io") {
		return nil, fmt.Errorf("a function is for %s, of which there is no definition: give it with Definitions, or give Rules", f.Kind)
	}
	plural, _ := meta.UnsafeGuessKindToResource(f.Kind.WithVersion(""))
	resource := plural.Resource
	switch f.Subresource {
	case "", "status", "ephemeralcontainers", "resize", "finalize", "approval": // of the resource's own kind
	default:
		return nil, fmt.Errorf("a function is for the subresource %s, and its objects, of kind %s, do not tell of which resource: give Rules", f.Subresource, f.Kind)
	}
	if f.Subresource != "" {
		resource += "/" + f.Subresource
	}
	versions := f.Versions
	if versions == nil {
		versions = []string{"*"}
	}
	var all []requests
	for _, v := range versions {
		all = append(all, requests{f.Kind.Group, resource, v, admissionregistrationv1.AllScopes})
	}
	return all, nil
}

// merge makes rules of the operations for each resource and version: first it joins versions, then
// resources.
func merge(operations map[requests][]string) (rules []admissionregistrationv1.RuleWithOperations) {
	for r, wanted := range operations {
		rule := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{r.group}, APIVersions: []string{r.version}, Resources: []string{r.resource}, Scope: &r.scope,
		}}
		for _, op := range []admissionregistrationv1.OperationType{ // in the order in which they happen to an object
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect,
		} {
			if slices.Contains(wanted, string(op)) {
				rule.Operations = append(rule.Operations, op)
			}
		}
		rules = append(rules, rule)
	}
	rules = join(rules, func(r *admissionregistrationv1.RuleWithOperations) *[]string { return &r.APIVersions })
	for i, r := range rules {
		slices.SortFunc(r.APIVersions, kubeversion.CompareKubeAwareVersionStrings)
		if slices.Contains(r.APIVersions, "*") { // the API server takes no other beside it
			rules[i].APIVersions = []string{"*"}
		}
	}
	return join(rules, func(r *admissionregistrationv1.RuleWithOperations) *[]string { return &r.Resources })
}

// join joins rules that differ in nothing but a list, and sorts them. Where the scopes differ too,
// the joined one is for all: each resource has one scope.
func join(rules []admissionregistrationv1.RuleWithOperations, list func(*admissionregistrationv1.RuleWithOperations) *[]string) (joined []admissionregistrationv1.RuleWithOperations) {
	text := func(r admissionregistrationv1.RuleWithOperations) string {
		return fmt.Sprint(r.APIGroups, r.Resources, r.APIVersions, r.Operations)
	}
	at := map[string]int{}
	for _, r := range rules {
		values := *list(&r)
		*list(&r) = nil
		i, ok := at[text(r)]
		if !ok {
			i = len(joined)
			at[text(r)] = i
			joined = append(joined, r)
		}
		if *joined[i].Scope != *r.Scope {
			joined[i].Scope = new(admissionregistrationv1.AllScopes)
		}
		*list(&joined[i]) = slices.Sorted(slices.Values(append(values, *list(&joined[i])...)))
	}
	slices.SortFunc(joined, func(a, b admissionregistrationv1.RuleWithOperations) int { return strings.Compare(text(a), text(b)) })
	return joined
}

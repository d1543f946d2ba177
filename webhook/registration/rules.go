package registration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/served"
)

// requests are the requests for a resource in a version.
type requests struct {
	group, resource, version string
	scope                    admissionregistrationv1.ScopeType
}

// rules returns the rules for the functions of a webhook, always in the same order. exact
// reports whether its match policy is Exact.
func (s *settings) rules(h *hook, functions []served.Function, exact bool) []admissionregistrationv1.RuleWithOperations {
	operations := map[requests][]string{}
	for _, f := range functions {
		for _, op := range f.Operations {
			one := f
			one.Operations = []string{op}
			if f.Versions == nil && !exact {
				one.Versions = versionsBeside(one, functions)
			}
			all, err := s.requests(one)
			if err != nil {
				s.errorf("%s: %w", h, err)
				break // it is the same for the other operations
			}
			for _, r := range all {
				operations[r] = append(operations[r], op)
			}
		}
	}
	return merge(operations)
}

// versionsBeside returns the versions in which other functions handle the requests of a
// function of all versions, or nil. The rules must not list other versions. The API server
// prefers a rule that matches exactly (GetMatchKind in
// apiserver/pkg/admission/plugin/webhook/matchconditions and generic/webhook.go), so it
// would not convert such requests, and not call the other functions.
func versionsBeside(f served.Function, functions []served.Function) (versions []string) {
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

// requests returns the requests for which a function is called.
func (s *settings) requests(f served.Function) ([]requests, error) {
	if f.Kind.Empty() {
		return nil, errors.New("function of every kind: name the kind with ForKind of package admission, or set Rules")
	}
	d := s.definition(f.Kind)
	if d == nil {
		return builtIn(f)
	}
	versions := d.served()
	if f.Versions != nil {
		versions = slices.DeleteFunc(versions, func(v string) bool { return !slices.Contains(f.Versions, v) })
		if len(versions) == 0 {
			return nil, fmt.Errorf("function for %s: version %s, expected one that %s serves", f.Kind, strings.Join(f.Versions, ", "), d)
		}
	}
	resource := d.Spec.Names.Plural
	switch f.Subresource {
	case "":
	case "status":
		resource += "/status"
		versions = slices.DeleteFunc(versions, func(v string) bool { return !d.hasStatus(v) })
		if len(versions) == 0 {
			return nil, fmt.Errorf("function for %s: subresource status, which %s does not have", f.Kind, d)
		}
	default:
		return nil, fmt.Errorf("function for %s: subresource %s has objects of another kind", f.Kind, f.Subresource)
	}
	var all []requests
	for _, v := range versions {
		all = append(all, requests{f.Kind.Group, resource, v, admissionregistrationv1.ScopeType(d.Spec.Scope)})
	}
	return all, nil
}

// builtInGroups are the API groups of Kubernetes whose names have a dot. Other groups that end in
// .k8s.io, such as gateway.networking.k8s.io, have CRDs.
var builtInGroups = sets.New(
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io",
	"node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
)

// builtIn returns the requests for a kind without a CRD.
func builtIn(f served.Function) ([]requests, error) {
	if strings.Contains(f.Kind.Group, ".") && !builtInGroups.Has(f.Kind.Group) {
		return nil, fmt.Errorf("function for %s: no CustomResourceDefinition: add it to CRDs, or set Rules", f.Kind)
	}
	plural, _ := meta.UnsafeGuessKindToResource(f.Kind.WithVersion(""))
	resource := plural.Resource
	switch f.Subresource {
	case "", "status", "ephemeralcontainers", "resize", "finalize", "approval": // of the resource's own kind
	default:
		return nil, fmt.Errorf("function for %s: subresource %s of an unknown resource: set Rules", f.Kind, f.Subresource)
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

// merge returns one rule for all versions of a resource that have the same operations.
func merge(operations map[requests][]string) (rules []admissionregistrationv1.RuleWithOperations) {
	byOperations := map[string]int{}
	order := func(a, b requests) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), kubeversion.CompareKubeAwareVersionStrings(a.version, b.version))
	}
	for _, r := range slices.SortedFunc(maps.Keys(operations), order) {
		var wanted []admissionregistrationv1.OperationType
		for _, op := range []admissionregistrationv1.OperationType{ // in the order in which they happen to an object
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect,
		} {
			if slices.Contains(operations[r], string(op)) {
				wanted = append(wanted, op)
			}
		}
		key := fmt.Sprint(r.group, "/", r.resource, wanted)
		i, ok := byOperations[key]
		switch {
		case !ok:
			byOperations[key] = len(rules)
			rules = append(rules, admissionregistrationv1.RuleWithOperations{Operations: wanted, Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.group}, APIVersions: []string{r.version}, Resources: []string{r.resource}, Scope: &r.scope,
			}})
		case rules[i].APIVersions[0] != "*": // which comes first, and the API server takes no other beside it
			rules[i].APIVersions = append(rules[i].APIVersions, r.version)
		}
	}
	return rules
}

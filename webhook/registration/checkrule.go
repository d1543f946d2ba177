package registration

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const wildcard = "*"

// checkRule returns what the API server refuses in a rule: validateRuleWithOperations in
// kubernetes/pkg/apis/admissionregistration/validation/validation.go.
func checkRule(r admissionregistrationv1.RuleWithOperations, path *field.Path) (errs field.ErrorList) {
	alone := func(name string, values []string) {
		at := path.Child(name)
		if len(values) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		if len(values) > 1 && slices.Contains(values, wildcard) {
			errs = append(errs, field.Invalid(at, values, "if '*' is present, it must be the only one"))
		}
	}
	var operations []string
	for i, op := range r.Operations {
		operations = append(operations, string(op))
		known := []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect}
		if !slices.Contains(known, op) {
			errs = append(errs, field.NotSupported(path.Child("operations").Index(i), op, known))
		}
	}
	alone("operations", operations)
	alone("apiGroups", r.APIGroups) // the empty one is that of v1
	alone("apiVersions", r.APIVersions)
	for i, v := range r.APIVersions {
		if v == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, checkResources(r.Resources, path.Child("resources"))...)
	scopes := []admissionregistrationv1.ScopeType{admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope, admissionregistrationv1.AllScopes}
	if r.Scope != nil && !slices.Contains(scopes, *r.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), *r.Scope, scopes))
	}
	return errs
}

// checkResources is validateResources of the same file. It looks at the order, too: pods and
// then pods/* is refused the other way round alone, and so it is here.
func checkResources(resources []string, path *field.Path) (errs field.ErrorList) {
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	last := "" // of those without a subresource
	for i, resource := range resources {
		if resource == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		name, subresource, ok := strings.Cut(resource, "/")
		if !ok {
			last = resource
			continue
		}
		for _, wider := range []string{name + "/" + wildcard, wildcard + "/" + subresource} {
			if slices.Contains(resources[:i], wider) {
				errs = append(errs, field.Invalid(path.Index(i), resource, "it is in "+wider+" already"))
			}
		}
	}
	if all := wildcard + "/" + wildcard; len(resources) > 1 && slices.Contains(resources, all) {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, it must be the only one"))
	}
	if slices.Contains(resources, wildcard) && last != wildcard {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, there must be no other without a subresource"))
	}
	return errs
}

package conversion

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Check returns every fault of the registry as a whole, joined.
//
// Without definitions, these are faults: no conversions at all; and, in the groups
// whose kinds it converts, each kind that is known in several versions, to the
// scheme or to the registry, but of which some version cannot be converted to
// another. A kind of one version needs no conversion.
//
// Each definition is compared with the registry. The API server converts between
// the versions that are served, that is stored, and that may still be stored from
// before (status.storedVersions): each must be reachable from every other. A
// version which the registry has and the definition has not is a fault too; so is
// a conversion that is not for a webhook, or none of whose
// conversionReviewVersions is v1 or v1beta1. A definition without a conversion
// stanza passes: it may be added when the definition is installed.
func (r *Registry) Check(definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	if len(r.kinds) == 0 {
		return errors.New("conversion: the registry has no conversions")
	}
	var faults []error
	versions := r.allVersions()
	for _, gk := range slices.SortedFunc(maps.Keys(versions), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		faults = append(faults, r.unreachable(gk, slices.Sorted(maps.Keys(versions[gk])))...)
	}
	for _, crd := range definitions {
		for _, fault := range r.compare(crd) {
			faults = append(faults, fmt.Errorf("conversion: CustomResourceDefinition %s: %w", crd.Name, fault))
		}
	}
	return errors.Join(faults...)
}

// allVersions returns the versions that must be convertible to each other.
func (r *Registry) allVersions() map[schema.GroupKind]map[string]bool {
	versions := map[schema.GroupKind]map[string]bool{}
	add := func(gvk schema.GroupVersionKind) {
		if gvk.Version == runtime.APIVersionInternal {
			return
		}
		if versions[gvk.GroupKind()] == nil {
			versions[gvk.GroupKind()] = map[string]bool{}
		}
		versions[gvk.GroupKind()][gvk.Version] = true
	}
	groups := map[string]bool{}
	for gk, k := range r.kinds {
		groups[gk.Group] = true
		for v := range k.versions() {
			add(gk.WithVersion(v))
		}
	}
	for gvk, t := range r.scheme.AllKnownTypes() {
		if _, isObject := reflect.New(t).Interface().(metav1.ObjectMetaAccessor); isObject && groups[gvk.Group] {
			add(gvk)
		}
	}
	return versions
}

// unreachable returns a fault for each two versions without a route.
func (r *Registry) unreachable(gk schema.GroupKind, versions []string) (faults []error) {
	k := r.kinds[gk]
	for _, from := range versions {
		for _, to := range versions {
			if from != to && (k == nil || k.routes[[2]string{from, to}] == nil) {
				faults = append(faults, fmt.Errorf("conversion: %s cannot be converted from %s to %s: add a conversion", gk, from, to))
			}
		}
	}
	return faults
}

// compare returns what is wrong between the registry and a definition.
func (r *Registry) compare(crd *apiextensionsv1.CustomResourceDefinition) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	defined, needed := map[string]bool{}, map[string]bool{}
	for _, v := range crd.Spec.Versions {
		defined[v.Name] = true
		if v.Served || v.Storage {
			needed[v.Name] = true
		}
	}
	for _, v := range crd.Status.StoredVersions {
		needed[v] = true
	}

	var known map[string]bool
	if k := r.kinds[gk]; k != nil {
		known = k.versions()
	}
	switch {
	case len(known) == 0 && len(needed) > 1:
		fault("the registry has no conversions of kind %s", gk)
		return faults
	case len(known) == 0:
		return nil
	}
	for _, v := range slices.Sorted(maps.Keys(needed)) {
		if !known[v] {
			fault("version %s is served or stored, and the registry does not convert it", v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(known)) {
		if !defined[v] {
			fault("the registry converts version %s, which is not defined", v)
		}
	}
	if c := crd.Spec.Conversion; c != nil {
		switch {
		case c.Strategy != apiextensionsv1.WebhookConverter:
			fault("spec.conversion.strategy is %s: the webhook would not be called", c.Strategy)
		case c.Webhook == nil || !slices.ContainsFunc(c.Webhook.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }):
			fault("spec.conversion.webhook.conversionReviewVersions has neither v1 nor v1beta1")
		}
	}
	return faults
}

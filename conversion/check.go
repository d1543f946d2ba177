package conversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
)

// Check returns one error that joins everything wrong with the registry as a whole.
//
// Without definitions, two things are errors: a registry without conversions, and two
// versions of a kind, known to the registry or to the scheme, of which one cannot be
// converted to the other. A kind without any conversion passes: the scheme does not tell
// whether the cluster has several versions of it, and whether they differ.
//
// Each definition, in texts of YAML or JSON with one or several CustomResourceDefinitions, is
// compared with the registry. The API server converts between
// the versions that are served, that is stored, and that may still be stored from
// before (status.storedVersions): each must be reachable from every other, unless
// the registry has no conversion of the kind and the strategy is None, which changes
// only the apiVersion. It is also an error if the registry has a version that the
// definition lacks, and, for a kind that it converts, if the strategy is not Webhook or
// conversionReviewVersions contains neither v1 nor v1beta1. A definition of such a kind
// without a conversion stanza passes: it may be added when the definition is installed.
func (r *Registry) Check(definitions ...[]byte) error {
	if len(r.kinds) == 0 {
		return errors.New("conversion: the registry has no conversions")
	}
	var errs []error
	for _, k := range r.Kinds() {
		errs = append(errs, r.unreachable(k.GroupKind)...)
	}
	for i, text := range definitions {
		found, err := crd.Read(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("conversion: definitions, text %d: %w", i+1, err))
		}
		for _, d := range found {
			for _, err := range r.compare(d) {
				errs = append(errs, fmt.Errorf("conversion: %s: %w", d, err))
			}
		}
	}
	return errors.Join(errs...)
}

// unreachable returns an error for each two versions of a kind without a route.
func (r *Registry) unreachable(gk schema.GroupKind) (errs []error) {
	k := r.kinds[gk]
	known := k.versions()
	for gvk := range r.scheme.AllKnownTypes() {
		if gvk.GroupKind() == gk && gvk.Version != runtime.APIVersionInternal {
			known[gvk.Version] = true
		}
	}
	versions := slices.Sorted(maps.Keys(known))
	for _, from := range versions {
		for _, to := range versions {
			if k.routes[[2]string{from, to}] == nil && from != to {
				errs = append(errs, fmt.Errorf("conversion: %s cannot be converted from %s to %s: add a conversion", gk, from, to))
			}
		}
	}
	return errs
}

// compare returns what is wrong between the registry and a definition.
func (r *Registry) compare(d *crd.Definition) (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	gk := d.GroupKind()
	defined, needed := map[string]bool{}, map[string]bool{}
	for _, v := range d.Spec.Versions {
		defined[v.Name] = true
	}
	for _, v := range append(d.Used(), d.Status.StoredVersions...) {
		needed[v] = true
	}

	var known map[string]bool
	if k := r.kinds[gk]; k != nil {
		known = k.versions()
	}
	if len(known) == 0 {
		if none := d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == "None"; len(needed) > 1 && !none {
			add("the registry has no conversions of kind %s: add them, or set spec.conversion.strategy to None if only apiVersion differs", gk)
		}
		return errs
	}
	for _, v := range slices.Sorted(maps.Keys(needed)) {
		if !known[v] {
			add("version %s is served or stored, and the registry does not convert it", v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(known)) {
		if !defined[v] {
			add("the registry converts version %s, which is not defined", v)
		}
	}
	if c := d.Spec.Conversion; c != nil {
		switch {
		case c.Strategy != "Webhook":
			add("spec.conversion.strategy is %s: the webhook would not be called", c.Strategy)
		case !slices.ContainsFunc(c.Webhook.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }):
			add("spec.conversion.webhook.conversionReviewVersions has neither v1 nor v1beta1")
		}
	}
	return errs
}

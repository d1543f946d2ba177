package conversion

import (
	"errors"
	"fmt"
	"slices"

	"github.com/crdkit/crdkit/internal/crd"
)

// Check returns an error that joins all inconsistencies of the registry, or nil.
//
// Without CustomResourceDefinitions (CRDs), Check returns an error if
//
//   - the registry has no conversions, or
//   - the scheme has a version of a kind that the registry converts, but the registry has no
//     conversion for this version.
//
// A kind without any conversion passes, because the scheme does not show whether its versions in
// the cluster differ.
//
// Each argument is the YAML or JSON of one or several CRDs, which Check compares with the registry,
// because the API server converts between all served and stored versions. For a kind that the
// registry converts, these are errors:
//
//   - The registry does not convert a version that is served, is the storage version, or is
//     in status.storedVersions.
//   - The registry converts a version that the CRD lacks.
//   - spec.conversion.strategy is not Webhook.
//   - spec.conversion.webhook.conversionReviewVersions contains neither v1 nor v1beta1.
//
// A CRD of such a kind passes without spec.conversion, because that field may be set when the CRD
// is installed. For a kind that the registry does not convert, several served or stored versions
// are an error, unless the strategy is None, which changes only apiVersion. An argument that cannot
// be read is an error too.
func (r *Registry) Check(definitions ...[]byte) error {
	if len(r.graph) == 0 {
		return errors.New("conversion: the registry has no conversions")
	}
	var errs []error
	for _, k := range r.Kinds() {
		for _, gv := range r.scheme.VersionsForGroupKind(k.GroupKind) {
			if !r.graph.has(gv.WithKind(k.Kind)) {
				errs = append(errs, fmt.Errorf("conversion: version %s of kind %s is in the scheme, but has no conversions: add them", gv.Version, k.GroupKind))
			}
		}
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

// compare returns the contradictions between the registry and a CRD.
func (r *Registry) compare(d *crd.Definition) (errs []error) {
	errorf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	gk := d.GroupKind()
	known, needed := r.Versions(gk), append(d.Used(), d.Status.StoredVersions...)
	slices.Sort(needed)
	needed = slices.Compact(needed)
	if len(known) == 0 {
		if none := d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == "None"; len(needed) > 1 && !none {
			errorf("the registry has no conversions of kind %s: add them, or set spec.conversion.strategy to None if only apiVersion differs", gk)
		}
		return errs
	}
	for _, v := range needed {
		if !slices.Contains(known, v) {
			errorf("version %s is served or stored, but the registry has no conversion for this version", v)
		}
	}
	for _, v := range known {
		if !slices.ContainsFunc(d.Spec.Versions, func(defined crd.Version) bool { return defined.Name == v }) {
			errorf("the registry converts version %s, which is not defined", v)
		}
	}
	if c := d.Spec.Conversion; c != nil {
		switch {
		case c.Strategy != "Webhook":
			errorf("spec.conversion.strategy is %s: the webhook would not be called", c.Strategy)
		case !slices.ContainsFunc(c.Webhook.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }):
			errorf("spec.conversion.webhook.conversionReviewVersions has neither v1 nor v1beta1")
		}
	}
	return errs
}

package conversion

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

// Kind is a kind whose conversions a registry holds.
type Kind struct {
	schema.GroupKind
	// Hub is the hub version, which may be the internal version ([runtime.APIVersionInternal]), or
	// empty if the kind has only direct conversions.
	Hub string
	// Versions are the versions in which objects are read and written, without the internal
	// version, the oldest first (v1alpha1, v1beta1, v1).
	Versions []string
}

// Kinds returns the kinds of the registry, sorted by group and name. The caller may modify
// the result.
func (r *Registry) Kinds() []Kind {
	var kinds []Kind
	for gk, k := range r.kinds {
		kinds = append(kinds, Kind{gk, k.hub, r.Versions(gk)})
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	})
	return kinds
}

// Versions returns the versions in which objects of a kind are read and written, the oldest
// first. It returns nil if the registry does not convert the kind. The caller may modify
// the result.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	k := r.kinds[gk]
	if k == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(k.versions()), kubeversion.CompareKubeAwareVersionStrings)
}

// Scheme returns the scheme that was passed to [NewRegistry].
func (r *Registry) Scheme() *runtime.Scheme { return r.scheme }

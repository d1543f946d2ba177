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
	// Hub is the hub version, or empty. It may be the internal version
	// ([runtime.APIVersionInternal]).
	Hub string
	// Versions are the versions that objects are read and written in, the oldest first
	// (v1alpha1, v1beta1, v1). The internal version is none of them.
	Versions []string
}

// Kinds returns the kinds of the registry, sorted by group and name. They are the
// caller's to change.
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

// Versions returns the versions of a kind that objects are read and written in, the
// oldest first; none if the registry does not convert the kind. They are the caller's to
// change.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	k := r.kinds[gk]
	if k == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(k.versions()), kubeversion.CompareKubeAwareVersionStrings)
}

// Scheme returns the scheme that the registry was made with.
func (r *Registry) Scheme() *runtime.Scheme { return r.scheme }

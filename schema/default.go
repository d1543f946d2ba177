package schema

import "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

// Default sets, in place, the defaults of the schema. Before that it removes each field
// that is null, but neither nullable nor with a default; an element of a list stays
// null. A default is set where its parent is there, and it creates no parent
// (apiextensions-apiserver/pkg/apiserver/schema/defaulting). The server prunes first: see
// [Version.Prune].
func (v *Version) Default(object map[string]any) {
	v.mustExist()
	if !v.definition.crd.Spec.PreserveUnknownFields {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	}
	defaulting.Default(object, v.structural)
}

package reference

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// Ref is one reference that an object holds.
type Ref struct {
	// Path of the field that holds the name.
	Path *field.Path
	// Namespace of the named object. Empty means the namespace of the object that
	// holds the reference. If the named kind is cluster-scoped, it is ignored.
	Namespace string
	// Name of the named object. An empty name is no reference: whether it is
	// allowed is for the schema to say.
	Name string
	// Optional says that the named object need not exist, as does the field
	// "optional" of core/v1's SecretKeySelector. [CrossNamespace] and [Authorize]
	// hold all the same. An optional reference does not keep what it names from
	// deletion: [NewReferrers] passes it over.
	Optional bool
}

// Optional makes all references that a function returns optional.
func Optional[T runtime.Object](refs func(obj T) []Ref) func(obj T) []Ref {
	return func(obj T) []Ref {
		all := slices.Clone(refs(obj))
		for i := range all {
			all[i].Optional = true
		}
		return all
	}
}

// possible says whether an object can have the name at all. One that cannot be a
// segment of a URL is never asked for.
func possible(name cache.ObjectName) bool {
	return len(content.IsPathSegmentName(name.Name)) == 0 && len(content.IsPathSegmentName(name.Namespace)) == 0
}

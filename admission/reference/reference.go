package reference

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// Ref is one reference that an object holds.
type Ref struct {
	// Path of the field that holds the name. If it is nil, messages have the plural of
	// the named kind in its place.
	Path *field.Path
	// Namespace of the named object. If it is empty, it is the namespace of the object
	// that holds the reference. It is ignored if the named kind is cluster-scoped.
	Namespace string
	// Name of the named object. An empty name is not a reference: whether it is allowed is
	// for the schema to decide.
	Name string
	// Optional means that the named object need not exist, like the field "optional" of
	// core/v1's SecretKeySelector. [CrossNamespace] and [Authorize] apply all the same.
	// An optional reference does not keep what it names from deletion.
	Optional bool

	problem string // of Fields: why there is no name
}

// Resource is a kind to which others refer: its resource, which is in messages and
// permission checks, and its scope.
type Resource struct {
	resource   schema.GroupResource
	namespaced bool
}

// ClusterScoped returns a kind whose objects are in no namespace.
func ClusterScoped(resource schema.GroupResource) Resource {
	return Resource{resource: resource}
}

// Namespaced returns a kind whose objects are in namespaces.
func Namespaced(resource schema.GroupResource) Resource {
	return Resource{resource: resource, namespaced: true}
}

// String returns the resource and its group.
func (r Resource) String() string { return r.resource.String() }

// resolve returns the object that a reference names, if an object in the given
// namespace holds it.
func (r Resource) resolve(from string, ref Ref) cache.ObjectName {
	switch {
	case !r.namespaced:
		return cache.ObjectName{Name: ref.Name}
	case ref.Namespace == "":
		return cache.ObjectName{Namespace: from, Name: ref.Name}
	default:
		return cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name}
	}
}

// checkScope returns an error for an object of the kind whose namespace does not fit
// the declared scope. With the wrong scope, no reference would be found.
func (r Resource) checkScope(name cache.ObjectName) error {
	switch {
	case r.namespaced && name.Namespace == "":
		return fmt.Errorf("reference: %s %q has no namespace, but its kind was declared Namespaced", r, name)
	case !r.namespaced && name.Namespace != "":
		return fmt.Errorf("reference: %s %q has a namespace, but its kind was declared ClusterScoped", r, name)
	}
	return nil
}

// impossible returns why no object of the kind can have the name; it is empty if one
// can. A name that is not one segment of a URL must never reach a client.
func (r Resource) impossible(name cache.ObjectName) string {
	if problems := content.IsPathSegmentName(name.Name); len(problems) > 0 {
		return "no object can have this name: " + strings.Join(problems, ", ")
	}
	switch {
	case !r.namespaced:
		return ""
	case name.Namespace == "":
		return "needs a namespace: the object that names it has none"
	case len(content.IsDNS1123Label(name.Namespace)) > 0:
		return fmt.Sprintf("namespace %q: not a valid name", name.Namespace)
	}
	return ""
}

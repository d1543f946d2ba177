package reference

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// Ref is one reference in an object.
type Ref struct {
	// Path is the path of the field that holds the name. If it is nil, error messages have the
	// plural resource name of the target instead.
	Path *field.Path
	// Namespace is the namespace of the target, or empty for the namespace of the referrer. It is
	// ignored if the target is cluster-scoped.
	Namespace string
	// Name is the name of the target. A Ref without a name is ignored, so require a name in the
	// schema.
	Name string
	// Optional means that the target need not exist, and is not protected from deletion, like the
	// field "optional" of core/v1's SecretKeySelector. [CrossNamespace] and [Authorize] check
	// optional references too.
	Optional bool
}

// Resource is a resource with its scope. It appears in error messages and permission checks.
type Resource struct {
	resource   schema.GroupResource
	namespaced bool
}

// ClusterScoped returns a Resource whose objects have no namespace.
func ClusterScoped(resource schema.GroupResource) Resource {
	return Resource{resource: resource}
}

// Namespaced returns a Resource whose objects are in namespaces.
func Namespaced(resource schema.GroupResource) Resource {
	return Resource{resource: resource, namespaced: true}
}

// String returns the resource and its group, such as toppings.example.com.
func (r Resource) String() string { return r.resource.String() }

// resolve returns the target of a reference in an object of the namespace from.
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

// checkScope returns an error for an object whose namespace does not fit the declared scope.
// With the wrong scope, the index would find no referrer.
func (r Resource) checkScope(name cache.ObjectName) error {
	switch {
	case r.namespaced && name.Namespace == "":
		return fmt.Errorf("reference: %s %q has no namespace, but its kind was declared Namespaced", r, name)
	case !r.namespaced && name.Namespace != "":
		return fmt.Errorf("reference: %s %q has a namespace, but its kind was declared ClusterScoped", r, name)
	}
	return nil
}

// impossible returns the reason why no object of the resource can have the name, or an empty
// string. A name that is not a single segment of a URL must never reach a client.
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

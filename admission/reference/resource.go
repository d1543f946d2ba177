package reference

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Resource is a kind to which others refer: its resource, which stands in messages
// and permission checks, and its scope. [ClusterScoped] and [Namespaced] make one.
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

func (r Resource) String() string { return r.resource.String() }

// named returns which object a reference names, if it stands in an object of the
// given namespace.
func (r Resource) named(from string, ref Ref) cache.ObjectName {
	switch {
	case !r.namespaced:
		return cache.ObjectName{Name: ref.Name}
	case ref.Namespace == "":
		return cache.ObjectName{Namespace: from, Name: ref.Name}
	default:
		return cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name}
	}
}

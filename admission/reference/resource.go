package reference

import (
	"fmt"

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

// target is what errors call the kind.
func (r Resource) target() string {
	if r.resource.Empty() {
		return "the target"
	}
	return "target " + r.String()
}

// misplaced returns an error for an object of the kind whose namespace does not fit
// the scope: then the kind was declared with the wrong one.
func (r Resource) misplaced(name cache.ObjectName) error {
	switch {
	case r.namespaced && name.Namespace == "":
		return fmt.Errorf("reference: %s %q has no namespace, but its kind was declared Namespaced", r, name)
	case !r.namespaced && name.Namespace != "":
		return fmt.Errorf("reference: %s %q has a namespace, but its kind was declared ClusterScoped", r, name)
	}
	return nil
}

// impossible returns why no object of the kind can have the name, whatever the cluster
// holds; it is empty if one can.
func (r Resource) impossible(name cache.ObjectName) string {
	if why := impossible(name); why != "" {
		return why
	}
	if r.namespaced && name.Namespace == "" {
		return "it needs a namespace: the object that names it has none"
	}
	return ""
}

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

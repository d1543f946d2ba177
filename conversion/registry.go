package conversion

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry holds the conversions of any number of kinds. Add everything first:
// a registry may be used from many goroutines, but not while it is added to.
type Registry struct {
	scheme   *runtime.Scheme
	kinds    map[schema.GroupKind]*kind
	versions map[string]schema.GroupVersion // by apiVersion
	names    map[schema.GroupVersion]string // and the reverse
	forms    map[reflect.Type]*typed
	workers  sync.Pool // of idle workers
}

// NewRegistry returns an empty registry. The scheme tells which Go type belongs
// to which group, version and kind; see package scheme.
func NewRegistry(s *runtime.Scheme) *Registry {
	return &Registry{
		scheme:   s,
		kinds:    map[schema.GroupKind]*kind{},
		versions: map[string]schema.GroupVersion{},
		names:    map[schema.GroupVersion]string{},
		forms:    map[reflect.Type]*typed{},
	}
}

// kind is the graph of one kind's versions.
type kind struct {
	hub    string
	steps  []*step
	routes map[[2]string][]*step // from version and to version
}

// add adds the conversions between two versions of a kind. If hub is set, the
// second version is the kind's hub.
func (r *Registry) add(hub bool, there, back *step) error {
	a, b := there.from, there.to
	if a.GroupKind() != b.GroupKind() || a.Version == b.Version {
		return fmt.Errorf("conversion: %s and %s are not two versions of one kind", a, b)
	}
	k := r.kinds[a.GroupKind()]
	if k == nil {
		k = &kind{}
	}
	if hub && k.hub != "" && k.hub != b.Version {
		return fmt.Errorf("conversion: %s cannot have the hub %s: the hub of the kind is %s already", a, b.Version, k.hub)
	}
	if slices.ContainsFunc(k.steps, func(s *step) bool { return s.from == a && s.to == b }) {
		return fmt.Errorf("conversion: the conversions between %s and version %s have been added before", a, b.Version)
	}
	if hub {
		k.hub = b.Version
	}
	k.steps = append(k.steps, there, back)
	k.connect()
	r.kinds[a.GroupKind()] = k
	for _, gv := range []schema.GroupVersion{a.GroupVersion(), b.GroupVersion()} {
		r.versions[gv.String()], r.names[gv] = gv, gv.String()
	}
	return nil
}

// groupVersion parses an apiVersion. Those of the registry are not parsed again.
func (r *Registry) groupVersion(apiVersion string) (schema.GroupVersion, error) {
	if gv, ok := r.versions[apiVersion]; ok {
		return gv, nil
	}
	return schema.ParseGroupVersion(apiVersion)
}

// apiVersion is the reverse.
func (r *Registry) apiVersion(gv schema.GroupVersion) string {
	if name, ok := r.names[gv]; ok {
		return name
	}
	return gv.String()
}

// connect finds the shortest route between every two versions.
func (k *kind) connect() {
	k.routes = map[[2]string][]*step{}
	for _, first := range k.steps {
		from := first.from.Version
		if _, done := k.routes[[2]string{from, from}]; done {
			continue
		}
		k.routes[[2]string{from, from}] = nil
		for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
			sofar := k.routes[[2]string{from, queue[0]}]
			for _, s := range k.steps {
				route := [2]string{from, s.to.Version}
				if _, known := k.routes[route]; s.from.Version == queue[0] && !known {
					k.routes[route] = append(slices.Clip(sofar), s)
					queue = append(queue, s.to.Version)
				}
			}
		}
	}
}

// route returns the steps that lead from one version of a kind to another.
func (r *Registry) route(from schema.GroupVersionKind, to schema.GroupVersion) ([]*step, error) {
	k := r.kinds[from.GroupKind()]
	if k == nil {
		return nil, fmt.Errorf("no conversions of kind %s are registered", from.GroupKind())
	}
	if from.Group != to.Group {
		return nil, fmt.Errorf("a conversion cannot change the group to %s", to.Group)
	}
	for _, version := range []string{from.Version, to.Version} {
		if _, known := k.routes[[2]string{version, version}]; !known {
			return nil, fmt.Errorf("version %s of kind %s is not registered", version, from.GroupKind())
		}
	}
	return k.routes[[2]string{from.Version, to.Version}], nil
}

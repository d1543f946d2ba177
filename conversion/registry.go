package conversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	workers  workers
}

// NewRegistry returns an empty registry. The scheme tells which Go type belongs
// to which group, version and kind; see package scheme.
func NewRegistry(s *runtime.Scheme) *Registry {
	return &Registry{
		scheme:   s,
		kinds:    map[schema.GroupKind]*kind{},
		versions: map[string]schema.GroupVersion{},
		names:    map[schema.GroupVersion]string{},
	}
}

// kind is the graph of one kind's versions.
type kind struct {
	hub    string
	steps  []*step
	routes map[[2]string][]*step // from version and to version
}

// AddSpoke adds the two conversions between a version of a kind, the spoke S,
// and the kind's hub version H. S and H are pointers to the Go types, and are
// inferred from the functions.
//
// A function finds in out the metadata of in, to which it may add labels and
// annotations, and zero values otherwise; it fills in the rest. It must not
// change in. It may keep parts of in in out. apiVersion and kind are set
// afterwards, whatever it leaves there. An error that it returns reaches the
// user with the name of the object before it; a panic becomes such an error.
//
// It is an error if the scheme does not know one of the types, or knows it by
// several names; if they are not two versions of one kind, or have no metadata;
// if the kind has another hub already, or the spoke has been added before. All
// that applies is joined, and nothing is added then.
func AddSpoke[S, H runtime.Object](r *Registry, toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error) error {
	spoke, spokeErr := r.kindOf(reflect.TypeFor[S]())
	hub, hubErr := r.kindOf(reflect.TypeFor[H]())
	if err := errors.Join(spokeErr, hubErr); err != nil {
		return err
	}
	if spoke.GroupKind() != hub.GroupKind() || spoke.Version == hub.Version {
		return fmt.Errorf("conversion: %s and %s are not two versions of one kind", spoke, hub)
	}
	if toHub == nil || fromHub == nil {
		return fmt.Errorf("conversion: %s needs both functions, to the hub and from it", spoke)
	}
	k := r.kinds[hub.GroupKind()]
	if k == nil {
		k = &kind{hub: hub.Version}
	}
	if k.hub != hub.Version {
		return fmt.Errorf("conversion: %s cannot have the hub %s: the hub of the kind is %s already", spoke, hub.Version, k.hub)
	}
	if slices.ContainsFunc(k.steps, func(s *step) bool { return s.from == spoke }) {
		return fmt.Errorf("conversion: %s has been added before", spoke)
	}
	s, h := typedForm[S](), typedForm[H]()
	k.steps = append(k.steps,
		&step{from: spoke, to: hub, in: s, out: h, call: func(ctx context.Context, in, out runtime.Object) error {
			return toHub(ctx, in.(S), out.(H))
		}},
		&step{from: hub, to: spoke, in: h, out: s, call: func(ctx context.Context, in, out runtime.Object) error {
			return fromHub(ctx, in.(H), out.(S))
		}})
	k.connect()
	r.kinds[hub.GroupKind()] = k
	for _, gv := range []schema.GroupVersion{spoke.GroupVersion(), hub.GroupVersion()} {
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

// kindOf returns the one kind under which the scheme knows a type.
func (r *Registry) kindOf(t reflect.Type) (schema.GroupVersionKind, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, fmt.Errorf("conversion: %s is not a pointer to a struct", t)
	}
	obj := reflect.New(t.Elem()).Interface().(runtime.Object)
	kinds, _, err := r.scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("conversion: the scheme does not know %s: %w", t, err)
	}
	if len(kinds) > 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("conversion: the scheme knows %s by several names: %v", t, kinds)
	}
	_, metaErr := objectMeta(obj)
	_, typeErr := typeMeta(obj)
	if err := cmp.Or(metaErr, typeErr); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("conversion: %w", err)
	}
	return kinds[0], nil
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

// Check returns every fault of the registry as a whole, joined: no conversions
// at all, and, in the groups whose kinds it converts, each kind which the scheme
// knows in several versions but of which some version cannot be converted to
// another. A kind of one version needs no conversion.
func (r *Registry) Check() error {
	if len(r.kinds) == 0 {
		return errors.New("conversion: the registry has no conversions")
	}
	groups := map[string]bool{}
	for gk := range r.kinds {
		groups[gk.Group] = true
	}
	versions := map[schema.GroupKind][]string{}
	for gvk, t := range r.scheme.AllKnownTypes() {
		_, isObject := reflect.New(t).Interface().(metav1.ObjectMetaAccessor)
		if isObject && groups[gvk.Group] && gvk.Version != runtime.APIVersionInternal {
			versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk.Version)
		}
	}
	var faults []error
	for _, gk := range slices.SortedFunc(maps.Keys(versions), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		slices.Sort(versions[gk])
		for _, from := range versions[gk] {
			for _, to := range versions[gk] {
				if from == to {
					continue
				}
				if k := r.kinds[gk]; k == nil || k.routes[[2]string{from, to}] == nil {
					faults = append(faults, fmt.Errorf("conversion: %s cannot be converted from %s to %s: add the conversion with AddSpoke", gk, from, to))
				}
			}
		}
	}
	return errors.Join(faults...)
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

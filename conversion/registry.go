package conversion

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Registry holds the conversions of any number of kinds. It is safe for concurrent use after all
// conversions have been added.
type Registry struct {
	scheme   *runtime.Scheme
	kinds    map[schema.GroupKind]*kind
	versions map[string]schema.GroupVersion // by apiVersion
	types    map[reflect.Type]*typed
	codecs   *codec.Codecs
	// decodeMetadata leaves out managedFields.
	decodeMetadata codec.Decoder
	converters     sync.Pool // that are idle
}

// NewRegistry returns an empty registry. The registry uses the scheme to look up the group,
// version and kind of each Go type; see package scheme.
func NewRegistry(s *runtime.Scheme) *Registry {
	codecs := codec.New()
	return &Registry{
		scheme:         s,
		kinds:          map[schema.GroupKind]*kind{},
		versions:       map[string]schema.GroupVersion{},
		types:          map[reflect.Type]*typed{},
		codecs:         codecs,
		decodeMetadata: codecs.Decoder(reflect.TypeFor[metav1.ObjectMeta](), "managedFields"),
	}
}

// groupVersion parses an apiVersion. The versions of the registry are parsed in advance.
func (r *Registry) groupVersion(apiVersion string) (schema.GroupVersion, error) {
	if gv, ok := r.versions[apiVersion]; ok {
		return gv, nil
	}
	return schema.ParseGroupVersion(apiVersion)
}

// kind is the graph of one kind's versions.
type kind struct {
	hub    string
	steps  []*step
	routes map[[2]string]*route // from version and to version
}

// versions returns the versions in which objects are read and written, without the internal
// version.
func (k *kind) versions() map[string]bool {
	versions := map[string]bool{}
	for _, s := range k.steps {
		versions[s.from.Version] = true
	}
	delete(versions, runtime.APIVersionInternal)
	return versions
}

// route is the list of steps from one version of a kind to another.
type route struct {
	from  schema.GroupVersionKind
	to    schema.GroupVersion
	steps []*step
	head  []byte // JSON of the converted object before its metadata
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
		return fmt.Errorf("conversion: %s cannot have the hub %s, because the kind has the hub %s: pass the function to the hub first", a, b.Version, k.hub)
	}
	for _, s := range k.steps {
		if s.plain != nil && !hub && (s.from == a || s.from == b) {
			return fmt.Errorf("conversion: %s is lossless, and a direct conversion would bypass the hub", s.from)
		}
	}
	if slices.ContainsFunc(k.steps, func(s *step) bool { return s.from == a && s.to == b }) {
		return fmt.Errorf("conversion: the conversions between %s and version %s have been added before", a, b.Version)
	}
	if hub {
		k.hub = b.Version
	}
	for _, s := range []*step{there, back} {
		s.fromType.APIVersion, s.fromType.Kind = s.from.ToAPIVersionAndKind()
		s.toType.APIVersion, s.toType.Kind = s.to.ToAPIVersionAndKind()
		k.steps = append(k.steps, s)
	}
	k.connect()
	r.converters = sync.Pool{} // they remember routes
	r.kinds[a.GroupKind()] = k
	for _, gv := range []schema.GroupVersion{a.GroupVersion(), b.GroupVersion()} {
		r.versions[gv.String()] = gv
	}
	return nil
}

// connect finds the shortest route between every two versions.
func (k *kind) connect() {
	k.routes = map[[2]string]*route{}
	for _, first := range k.steps {
		from := first.from
		if _, done := k.routes[[2]string{from.Version, from.Version}]; done {
			continue
		}
		here := newRoute(from, from, nil)
		k.routes[[2]string{from.Version, from.Version}] = here
		for queue := []*route{here}; len(queue) > 0; queue = queue[1:] {
			sofar := queue[0]
			for _, s := range k.steps {
				ends := [2]string{from.Version, s.to.Version}
				if _, known := k.routes[ends]; s.from.GroupVersion() == sofar.to && !known {
					k.routes[ends] = newRoute(from, s.to, append(slices.Clip(sofar.steps), s))
					queue = append(queue, k.routes[ends])
				}
			}
		}
	}
}

func newRoute(from, to schema.GroupVersionKind, steps []*step) *route {
	return &route{from, to.GroupVersion(), steps, headOf(to)}
}

// headOf returns the text of an object as far as to its metadata.
func headOf(kind schema.GroupVersionKind) []byte {
	head := rawjson.AppendQuote([]byte(`{"apiVersion":`), kind.GroupVersion().String())
	head = rawjson.AppendQuote(append(head, `,"kind":`...), kind.Kind)
	return append(head, `,"metadata":`...)
}

// route returns the route from one version of a kind to another.
func (r *Registry) route(from schema.GroupVersionKind, to schema.GroupVersion) (*route, error) {
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
	if found := k.routes[[2]string{from.Version, to.Version}]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("version %s of kind %s has no conversion to %s", from.Version, from.GroupKind(), to.Version)
}

// throughHub returns the route from a version of a kind to the hub and back.
func (r *Registry) throughHub(from schema.GroupVersionKind) (*route, error) {
	k := r.kinds[from.GroupKind()]
	if k == nil {
		return nil, fmt.Errorf("no conversions of kind %s are registered", from.GroupKind())
	}
	there, back := k.routes[[2]string{from.Version, k.hub}], k.routes[[2]string{k.hub, from.Version}]
	if there == nil || back == nil {
		return nil, fmt.Errorf("version %s of kind %s has no conversions to a hub and back", from.Version, from.GroupKind())
	}
	return newRoute(from, from, slices.Concat(there.steps, back.steps)), nil
}

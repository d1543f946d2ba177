package conversion

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/lost"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// step is one conversion: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  *codec.Form
	call     func(ctx context.Context, in, out runtime.Object) error
	// The apiVersion and kind of from and to.
	fromType, toType metav1.TypeMeta
	// transform, if it is set, converts the payload of an object instead of call.
	transform func(ctx context.Context, c *converter, p payload) (payload, error)
	// shares is set if the function may let out share memory with in: see [trace.Call].
	shares bool
	// plain is the step without [Lossless], or nil if the step is not lossless.
	plain *step
}

// payload holds the parts of an object that a step may change. Its body may be in the converter's
// buffer, and is valid until the next step.
type payload = lost.Payload

// graph holds the versions of all kinds, and the steps between them.
type graph map[schema.GroupKind]*kind

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
func (g graph) add(hub bool, there, back *step) error {
	a, b := there.from, there.to
	if a.GroupKind() != b.GroupKind() || a.Version == b.Version {
		return fmt.Errorf("conversion: %s and %s are not two versions of one kind", a, b)
	}
	k := g[a.GroupKind()]
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
	g[a.GroupKind()] = k
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
		here := &route{from: from, to: from.GroupVersion()}
		k.routes[[2]string{from.Version, from.Version}] = here
		for queue := []*route{here}; len(queue) > 0; queue = queue[1:] {
			sofar := queue[0]
			for _, s := range k.steps {
				ends := [2]string{from.Version, s.to.Version}
				if _, known := k.routes[ends]; s.from.GroupVersion() == sofar.to && !known {
					k.routes[ends] = newRoute(from, append(slices.Clip(sofar.steps), s))
					queue = append(queue, k.routes[ends])
				}
			}
		}
	}
}

func newRoute(from schema.GroupVersionKind, steps []*step) *route {
	last := steps[len(steps)-1]
	return &route{from, last.to.GroupVersion(), steps, headOf(last.toType)}
}

// headOf returns the text of an object as far as to its metadata.
func headOf(t metav1.TypeMeta) []byte {
	head := rawjson.AppendQuote([]byte(`{"apiVersion":`), t.APIVersion)
	head = rawjson.AppendQuote(append(head, `,"kind":`...), t.Kind)
	return append(head, `,"metadata":`...)
}

// route returns the route from one version of a kind to another. A route to the same version has no steps,
// even if the kind is not registered.
func (g graph) route(from schema.GroupVersionKind, to schema.GroupVersion) (*route, error) {
	k := g[from.GroupKind()]
	switch {
	case from.GroupVersion() == to:
		return &route{from: from, to: to}, nil
	case k == nil:
		return nil, fmt.Errorf("no conversions of kind %s are registered", from.GroupKind())
	case from.Group != to.Group:
		return nil, fmt.Errorf("a conversion cannot change the group to %s", to.Group)
	}
	if found := k.routes[[2]string{from.Version, to.Version}]; found != nil {
		return found, nil
	}
	for _, version := range []string{from.Version, to.Version} {
		if !g.has(from.GroupKind().WithVersion(version)) {
			return nil, fmt.Errorf("version %s of kind %s is not registered", version, from.GroupKind())
		}
	}
	return nil, fmt.Errorf("version %s of kind %s has no conversion to %s", from.Version, from.GroupKind(), to.Version)
}

// throughHub returns the route from a version of a kind to the hub and back.
func (g graph) throughHub(from schema.GroupVersionKind) (*route, error) {
	k := g[from.GroupKind()]
	if k == nil {
		return nil, fmt.Errorf("no conversions of kind %s are registered", from.GroupKind())
	}
	there, back := k.routes[[2]string{from.Version, k.hub}], k.routes[[2]string{k.hub, from.Version}]
	if there == nil || back == nil {
		return nil, fmt.Errorf("version %s of kind %s has no conversions to a hub and back", from.Version, from.GroupKind())
	}
	return newRoute(from, slices.Concat(there.steps, back.steps)), nil
}

// has reports whether a version has conversions.
func (g graph) has(version schema.GroupVersionKind) bool {
	k := g[version.GroupKind()]
	return k != nil && k.routes[[2]string{version.Version, version.Version}] != nil
}

package conversion

import (
	"context"
	"fmt"

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
	function func(ctx context.Context, in, out runtime.Object) error
	// The apiVersion and kind of from and to.
	fromType, toType metav1.TypeMeta
	// transform, if it is set, converts the payload of an object instead of the function: AddFields and
	// Lossless set it.
	transform func(ctx context.Context, c *converter, p payload) (payload, error)
	// shares is set if the function may let out share memory with in: see [conversiontrace.Call].
	shares bool
	// plain is the step without [Lossless], or nil if the step is not lossless.
	plain *step
}

// payload holds the parts of an object that a step may change. Its body may be in the converter's
// buffer, and is valid until the next step.
type payload = lost.Payload

// graph holds the versions of all kinds, and the steps between them.
type graph map[schema.GroupKind]*kind

// kind holds the conversions of one kind: those between each spoke and the hub.
type kind struct {
	hub    string
	spokes map[string]*spokeSteps // by version
	routes map[[2]string]*route   // from version and to version
}

type spokeSteps struct{ toHub, fromHub *step }

// route is the list of steps from one version of a kind to another.
type route struct {
	from  schema.GroupVersionKind
	to    schema.GroupVersion
	steps []*step
	head  []byte // JSON of the converted object before its metadata
}

// add adds the conversions between a spoke and its hub.
func (g graph) add(toHub, fromHub *step) error {
	spoke, hub := toHub.from, toHub.to
	if spoke.GroupKind() != hub.GroupKind() || spoke.Version == hub.Version {
		return fmt.Errorf("conversion: %s and %s are not two versions of one kind", spoke, hub)
	}
	k := g[spoke.GroupKind()]
	if k == nil {
		k = &kind{hub: hub.Version, spokes: map[string]*spokeSteps{}, routes: map[[2]string]*route{}}
		g[spoke.GroupKind()] = k
	}
	if k.hub != hub.Version {
		return fmt.Errorf("conversion: %s cannot have the hub %s, because the kind has the hub %s: pass the function to the hub first", spoke, hub.Version, k.hub)
	}
	if k.spokes[spoke.Version] != nil {
		return fmt.Errorf("conversion: the conversions between %s and version %s have been added before", spoke, hub.Version)
	}
	for _, s := range []*step{toHub, fromHub} {
		s.fromType.APIVersion, s.fromType.Kind = s.from.ToAPIVersionAndKind()
		s.toType.APIVersion, s.toType.Kind = s.to.ToAPIVersionAndKind()
	}
	k.connect(toHub)
	k.connect(fromHub)
	for _, other := range k.spokes {
		k.connect(toHub, other.fromHub)
		k.connect(other.toHub, fromHub)
	}
	k.spokes[spoke.Version] = &spokeSteps{toHub, fromHub}
	return nil
}

// connect adds the route of some steps.
func (k *kind) connect(steps ...*step) {
	r := newRoute(steps...)
	k.routes[[2]string{r.from.Version, r.to.Version}] = r
}

func newRoute(steps ...*step) *route {
	last := steps[len(steps)-1]
	return &route{steps[0].from, last.to.GroupVersion(), steps, headOf(last.toType)}
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
	missing := to.WithKind(from.Kind)
	if !g.has(from) {
		missing = from
	}
	return nil, fmt.Errorf("version %s of kind %s is not registered", missing.Version, missing.GroupKind())
}

// throughHub returns the route from a spoke to the hub and back.
func (g graph) throughHub(spoke schema.GroupVersionKind) (*route, error) {
	if k := g[spoke.GroupKind()]; k != nil && k.spokes[spoke.Version] != nil {
		s := k.spokes[spoke.Version]
		return newRoute(s.toHub, s.fromHub), nil
	}
	return nil, fmt.Errorf("version %s of kind %s has no conversions to a hub and back", spoke.Version, spoke.GroupKind())
}

// has reports whether a version has conversions.
func (g graph) has(version schema.GroupVersionKind) bool {
	k := g[version.GroupKind()]
	return k != nil && (k.hub == version.Version || k.spokes[version.Version] != nil)
}

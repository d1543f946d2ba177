package conversion

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/codec"
)

// Registry holds the conversions of any number of kinds. It is safe for concurrent use after all
// conversions have been added.
type Registry struct {
	scheme     *runtime.Scheme
	graph      graph
	codecs     *codec.Codecs
	metadata   codec.Decoder // which leaves out managedFields
	converters sync.Pool     // that are idle
}

// NewRegistry returns an empty registry. The registry uses the scheme to look up the group,
// version and kind of each Go type; see package scheme.
func NewRegistry(s *runtime.Scheme) *Registry {
	codecs := codec.New()
	return &Registry{
		scheme:   s,
		graph:    graph{},
		codecs:   codecs,
		metadata: codecs.Decoder(reflect.TypeFor[metav1.ObjectMeta](), "managedFields"),
	}
}

// Kind is a kind whose conversions a registry holds.
type Kind struct {
	schema.GroupKind
	// Hub is the hub version, which may be the internal version ([runtime.APIVersionInternal]).
	Hub string
	// Versions are the versions in which objects are read and written, without the internal
	// version, the oldest first (v1alpha1, v1beta1, v1).
	Versions []string
}

// Kinds returns the kinds of the registry, sorted by group and name. The caller may modify
// the result.
func (r *Registry) Kinds() []Kind {
	var kinds []Kind
	for gk, k := range r.graph {
		kinds = append(kinds, Kind{gk, k.hub, r.Versions(gk)})
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	})
	return kinds
}

// Versions returns the versions in which objects of a kind are read and written, the oldest
// first. It returns nil if the registry does not convert the kind. The caller may modify
// the result.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	k := r.graph[gk]
	if k == nil {
		return nil
	}
	versions := append(slices.Collect(maps.Keys(k.spokes)), k.hub)
	versions = slices.DeleteFunc(versions, func(v string) bool { return v == runtime.APIVersionInternal })
	slices.SortFunc(versions, kubeversion.CompareKubeAwareVersionStrings)
	return versions
}

// Scheme returns the scheme that was passed to [NewRegistry].
func (r *Registry) Scheme() *runtime.Scheme { return r.scheme }

package equivalence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/schema"
)

// kind is a version of a kind, to which requests are sent.
type kind struct {
	gvk        runtimeschema.GroupVersionKind
	resource   runtimeschema.GroupVersionResource
	namespaced bool
	hasStatus  bool
	makers     []*generate.Generator
	others     []*kind // versions
	samples    []map[string]any
	created    int         // objects, in both releases
	named      *sync.Mutex // of all versions, held while an object has one of the names of the comparison
}

// path returns the path of the resource.
func (k *kind) path(namespace string) string {
	at := path.Join("/apis", k.gvk.Group, k.gvk.Version)
	if k.gvk.Group == "" {
		at = path.Join("/api", k.gvk.Version)
	}
	if k.namespaced {
		at = path.Join(at, "namespaces", namespace)
	}
	return path.Join(at, k.resource.Resource)
}

// findKinds finds the kinds that both releases serve, and what matters in requests for them, besides what their manifests say.
func (c *comparison) findKinds(fromManifests []hint) error {
	if err := c.checkSides(); err != nil {
		return err
	}
	for _, d := range c.sides[0].release.Definitions {
		if err := c.addVersions(d, c.sides[1].definitions[d.GroupKind()]); err != nil {
			return err
		}
	}
	for _, sample := range c.samples {
		gvk := (&unstructured.Unstructured{Object: sample}).GroupVersionKind()
		at := slices.IndexFunc(c.kinds, func(k *kind) bool { return k.gvk == gvk })
		if at < 0 {
			at = len(c.kinds)
			c.kinds = append(c.kinds, &kind{gvk: gvk})
		}
		c.kinds[at].samples = append(c.kinds[at].samples, sample)
	}
	if len(c.kinds) == 0 {
		return fmt.Errorf("the releases define no kind, and there are no samples")
	}
	for _, k := range c.kinds {
		k.named = &sync.Mutex{}
		for _, other := range c.kinds {
			if other != k && other.gvk.GroupKind() == k.gvk.GroupKind() {
				k.others = append(k.others, other)
				k.named = cmp.Or(other.named, k.named)
			}
		}
		for _, s := range c.sides {
			var err error
			if k.resource, k.namespaced, err = s.resource(k.gvk); err != nil {
				return err
			}
			k.hasStatus = k.hasStatus || s.hasStatus(k.resource)
		}
	}
	for _, s := range c.sides {
		for gvk, counter := range s.counters.rules {
			if !slices.ContainsFunc(c.kinds, func(k *kind) bool { return k.gvk.String() == gvk }) {
				s.decisions = slices.DeleteFunc(s.decisions, func(d *Decision) bool { return slices.Contains(counter.decisions, d) })
			}
		}
	}
	c.rules.add(fromManifests...)
	return nil
}

// checkSides returns an error unless both releases have the same definitions and namespaces.
func (c *comparison) checkSides() error {
	for i, s := range c.sides {
		other := c.sides[1-i]
		for _, d := range s.release.Definitions {
			if other.definitions[d.GroupKind()] == nil {
				return fmt.Errorf("%s: there is no definition of %s, which release %s has", other.name, d.GroupKind(), s.name)
			}
		}
		for _, name := range s.namespaces() {
			if !slices.Contains(other.namespaces(), name) {
				return fmt.Errorf("%s: there is no Namespace %s, which release %s has", other.name, name, s.name)
			}
		}
	}
	return nil
}

// addVersions adds the versions of a kind that both releases serve, and the hints of their schemas.
func (c *comparison) addVersions(before, after *schema.Definition) error {
	known := len(c.kinds)
	for _, name := range before.Versions() {
		if !before.Version(name).Served() || !after.Version(name).Served() {
			continue
		}
		k := &kind{gvk: before.GroupKind().WithVersion(name)}
		for i, d := range []*schema.Definition{before, after} {
			g, err := newGenerator(k.gvk, d.Version(name))
			if err != nil {
				return fmt.Errorf("%s: %w", c.sides[i].name, err)
			}
			k.makers = append(k.makers, g)
			c.addSchema(d.Version(name).Structural())
		}
		c.kinds = append(c.kinds, k)
	}
	if len(c.kinds) == known {
		return fmt.Errorf("%s: no version is served in both releases", before.GroupKind())
	}
	return nil
}

// newGenerator returns a generator of objects that a version accepts.
func newGenerator(gvk runtimeschema.GroupVersionKind, v *schema.Version) (*generate.Generator, error) {
	if v.Structural() == nil {
		return nil, fmt.Errorf("%s: the version has no structural schema", gvk)
	}
	return generate.New(gvk, v.Structural(), func(object map[string]any) field.ErrorList {
		object = apiruntime.DeepCopyJSON(object)
		v.Prune(object)
		v.Default(object)
		return v.Validate(context.Background(), object)
	})
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

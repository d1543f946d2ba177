package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/schema"
)

// CRD generates objects from the schemas of CustomResourceDefinitions (CRDs), and adds the laws
// [Acceptance], [Decoding] and [Drift]. The argument is YAML or JSON with one or more CRDs: see
// [schema.ParseAll]. CRDs of kinds that the registry does not convert are ignored; the others must
// have all versions of the registry, and serve or store no others.
//
// The API server would accept the generated objects, except for the law [OutsideSchema]. The
// objects have the defaults of the schema, except for the laws [Defaulting] and OutsideSchema, and
// can be decoded by the Go type of their version, if there is one, except for the law Decoding.
//
// The functions of [Funcs] apply to an internal hub, which has no schema, but not to these objects.
// If a conversion loses something that has no meaning, such as an order, declare the difference
// with [Normalize].
func CRD(text []byte) Option {
	return func(c *config) {
		definitions, err := schema.ParseAll(text)
		if err == nil && len(definitions) == 0 {
			err = errors.New("the text has no CustomResourceDefinition")
		}
		if err != nil {
			c.errorf("roundtrip.CRD: %w", err)
		}
		c.definitions = append(c.definitions, definitions...)
	}
}

// definition returns the CRD of a kind, or nil.
func (c *config) definition(kind kubeschema.GroupKind) *schema.Definition {
	i := slices.IndexFunc(c.definitions, func(d *schema.Definition) bool { return d.GroupKind() == kind })
	if i < 0 {
		return nil
	}
	return c.definitions[i]
}

// checkDefinitions returns an error if a CRD lacks a version, or if no CRD is used.
func (c *config) checkDefinitions(reg *conversion.Registry) error {
	var errs []error
	used := 0
	for _, kind := range reg.Kinds() {
		d := c.definition(kind.GroupKind)
		if d == nil {
			continue
		}
		used++
		for _, v := range kind.Versions {
			if !slices.Contains(d.Versions(), v) {
				errs = append(errs, fmt.Errorf("roundtrip.CRD: the definition of %s has no version %s", kind.GroupKind, v))
			}
		}
		for _, v := range d.CustomResourceDefinition().Spec.Versions {
			if (v.Served || v.Storage) && !slices.Contains(kind.Versions, v.Name) {
				errs = append(errs, fmt.Errorf("roundtrip.CRD: the definition of %s has version %s, which the registry does not convert", kind.GroupKind, v.Name))
			}
		}
	}
	if len(c.definitions) > 0 && used == 0 {
		errs = append(errs, fmt.Errorf("roundtrip.CRD: no definition is of a kind that the registry converts: the first is of %s", c.definitions[0].GroupKind()))
	}
	if c.outside && used == 0 {
		errs = append(errs, errors.New("roundtrip.CheckLaw: objects outside of a schema need one: see roundtrip.CRD"))
	}
	return errors.Join(errs...)
}

// schemaGenerator makes objects that the API server would accept, without its defaults.
type schemaGenerator struct {
	kind kubeschema.GroupVersionKind
	by   *generate.Generator
	// known has the Go type that must be able to decode the objects, or is nil.
	known *runtime.Scheme
}

// generatorKey is what a generator depends on, in one test.
type generatorKey struct {
	definition *schema.Definition // nil for a typeGenerator
	kind       kubeschema.GroupVersionKind
	decodes    bool
}

// schemaGenerator returns the generator of a version. With CEL rules it takes long to find the first object.
// If it is asked for, the Go type of the version can decode the objects.
func (c *config) schemaGenerator(reg *conversion.Registry, kind kubeschema.GroupVersionKind, d *schema.Definition, decodes bool) (schemaGenerator, error) {
	key := generatorKey{d, kind, decodes}
	if g, ok := c.generators[key].(schemaGenerator); ok {
		return g, nil
	}
	v, types := d.Version(kind.Version), reg.Scheme().AllKnownTypes()
	structural := v.Structural()
	if now := c.definition(kind.GroupKind()); now != d {
		structural = withUnknown(d, now, kind.Version)
	}
	g := schemaGenerator{kind: kind}
	t, typed := types[kind]
	switch {
	case typed && decodes:
		structural, g.known = narrowed(structural, t, decodable), reg.Scheme()
	case typed:
		structural = narrowed(structural, t, quick)
	}
	var others []*structuralschema.Structural
	for _, other := range append(slices.Clone(c.definitions), d) {
		if other.GroupKind() != kind.GroupKind() {
			continue
		}
		for _, name := range other.Versions() {
			if s := other.Version(name).Structural(); s != nil {
				others = append(others, s)
			}
			if t, ok := types[kind.GroupKind().WithVersion(name)]; ok && !typed {
				structural = narrowed(structural, t, quick) // because clients may read the object in that version
			}
		}
	}
	var err error
	g.by, err = generate.New(kind, structural, func(object map[string]any) field.ErrorList {
		object = runtime.DeepCopyJSON(object)
		v.Default(object)
		return v.Validate(context.Background(), object)
	}, others...)
	if err == nil {
		c.generators[key] = g
	}
	return g, err
}

func (g schemaGenerator) leaves() []generate.Target { return g.by.Targets() }

func (g schemaGenerator) object(_ context.Context, src *choices.Source) ([]byte, error) {
	m, err := g.by.Object(src)
	if err != nil {
		return nil, err
	}
	text, err := kubejson.Marshal(m)
	if err != nil || g.known == nil {
		return text, err
	}
	if _, err := rewrite(g.known, g.kind, text); err != nil {
		return nil, fmt.Errorf("%w: the schema accepts what the Go type cannot decode: %w", errNotMade, err)
	}
	return text, nil
}

// outsideSchema makes an object that breaks a rule of the schema.
func outsideSchema(_ context.Context, s *subject, src *choices.Source) (m sample, err error) {
	g, err := s.cfg.schemaGenerator(s.registry, s.kind.WithVersion(s.path[0]), s.definition, true)
	if err != nil {
		return m, err
	}
	var object map[string]any
	if src.Part(func() { object, err = g.by.Outside(src) }); err != nil {
		return m, fmt.Errorf("%w: %w", errNotMade, err)
	}
	m.json, err = kubejson.Marshal(object)
	return m, err
}

// refusedNulls returns an error for each null outside of the status that the API server leaves out of
// what clients read and write, but not of the result of server-side apply. It converts that result
// again if the manager has applied the object in another version.
//
// (sigs.k8s.io/structured-merge-diff/merge/update.go, prune)
func refusedNulls(ctx context.Context, v *schema.Version, object []byte) (errs []error) {
	m, err := decode(object)
	if err != nil {
		return []error{err}
	}
	structuraldefaulting.Default(m, v.Structural())
	for _, err := range v.Validate(ctx, m) {
		if err.Type == field.ErrorTypeTypeInvalid && err.BadValue == "null" && !strings.HasPrefix(err.Field, "status.") {
			errs = append(errs, fmt.Errorf("%w; reads and updates leave this null out, but server-side apply fails if the same manager has applied the object in another version before", err))
		}
	}
	return errs
}

// withDefaults returns an object of a version with the defaults of its schema.
func withDefaults(v *schema.Version, object []byte) ([]byte, error) {
	m, err := decode(object)
	if err != nil {
		return nil, err
	}
	v.Default(m)
	return kubejson.Marshal(m)
}

// decode decodes an object as the API server does.
func decode(object []byte) (m map[string]any, err error) {
	return m, kubejson.Unmarshal(object, &m)
}

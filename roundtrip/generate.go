package roundtrip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/generate"
)

// generator makes objects of one version of a kind, or returns an error if it cannot, or if a
// function of [Funcs] does not end, panics, or makes something other than an object.
type generator interface {
	object(ctx context.Context, src *choices.Source) ([]byte, error)
	// leaves returns the leaves and lists that the version has.
	leaves() []generate.Target
}

// generator returns the generator of a version, by its schema if there is one. Its objects can be decoded,
// except for the law [Decoding].
func (s *subject) generator(version string) (generator, error) {
	if d := s.definition; d != nil && version != runtime.APIVersionInternal && d.Version(version).Structural() != nil {
		return s.cfg.schemaGenerator(s.registry, s.kind.WithVersion(version), d, s.law != Decoding)
	}
	return newTypeGenerator(s.registry, s.cfg, s.kind, version)
}

// typeGenerator makes objects of a Go type.
type typeGenerator struct {
	registry *conversion.Registry
	kind     schema.GroupVersionKind
	typed    schema.GroupVersionKind // the version that has a Go type
	filler   *randfill.Filler
	source   *choices.Source      // of the current object
	within   map[reflect.Type]int // the number of unfinished values of a type
	targets  []generate.Target
	plan     *generate.Plan // of the current object
	at       place
	texts    map[string]string // the last one at each path
}

// newTypeGenerator returns an error if no version of the kind has a Go type.
func newTypeGenerator(reg *conversion.Registry, cfg *config, kind conversion.Kind, version string) (*typeGenerator, error) {
	key := generatorKey{kind: kind.WithVersion(version)}
	if g, ok := cfg.generators[key].(*typeGenerator); ok {
		return g, nil
	}
	typed, err := typedVersion(reg, kind, version)
	if err != nil {
		return nil, err
	}
	// About as many elements as a reader would write into an example.
	filler := randfill.New().NilChance(0.2).NumElements(0, 3)
	g := &typeGenerator{registry: reg, kind: kind.WithVersion(version), typed: typed, filler: filler, within: map[reflect.Type]int{}}
	t := reg.Scheme().AllKnownTypes()[typed]
	g.targets = targetsOf(t, "", nil, nil, nil)
	filler.Funcs(g.plain(t)...).Funcs(g.fillers()...).Funcs(cfg.functions(reg.Scheme())...)
	cfg.generators[key] = g
	return g, nil
}

// typedVersion returns the version to generate objects in: the one that is wanted, or the
// newest one that has a Go type.
func typedVersion(reg *conversion.Registry, kind conversion.Kind, wanted string) (schema.GroupVersionKind, error) {
	var found schema.GroupVersionKind
	for _, v := range append(slices.Clip(kind.Versions), wanted) {
		if gvk := kind.WithVersion(v); reg.Scheme().Recognizes(gvk) {
			found = gvk
		}
	}
	if found.Empty() {
		return found, fmt.Errorf("no version of %s has a Go type to make objects of: register the type of one version in the scheme that the registry is made with", kind.GroupKind)
	}
	return found, nil
}

func (g *typeGenerator) leaves() []generate.Target { return g.targets }

func (g *typeGenerator) object(ctx context.Context, src *choices.Source) ([]byte, error) {
	obj, err := g.value(src)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(obj)
	if err == nil {
		text, err = rewrite(g.registry.Scheme(), g.typed, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a %s: %w", g.typed, err)
	}
	if g.kind == g.typed {
		return text, nil
	}
	if text, err = g.registry.Convert(ctx, text, g.kind.GroupVersion()); err != nil {
		return nil, fmt.Errorf("version %s has no Go type, and an object of %s does not become one: %w", g.kind.Version, g.typed.Version, err)
	}
	return text, nil
}

// value makes the Go value of an object.
func (g *typeGenerator) value(src *choices.Source) (runtime.Object, error) {
	obj, err := g.registry.Scheme().New(g.typed)
	if err != nil {
		return nil, err
	}
	g.source, g.plan = src, generate.PlanOf(g.targets, src.Even())
	g.texts = map[string]string{}
	g.at = place{leaves: generate.Budget(src.Uint64()), share: 1}
	g.filler.RandSource(src).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(g.typed)
	return obj, nil
}

// errNotMade says that there is no object for these draws.
var errNotMade = errors.New("no object could be made")

// maker makes a sample of draws.
type maker func(ctx context.Context, s *subject, src *choices.Source) (sample, error)

// sample makes a sample of draws: that of the law, or an object of the path's first version as the API
// server or the Go type has it.
func (s *subject) sample(ctx context.Context, src *choices.Source) (m sample, err error) {
	defer func() {
		m.source = src
		switch v := recover(); {
		case v == choices.ErrEndless:
			err = fmt.Errorf("%w: a function of roundtrip.Funcs does not end if all draws are zero", errNotMade)
		case v != nil:
			err = fmt.Errorf("cannot make a %s: panic: %v: if the type is the reason, give a function for it with roundtrip.Funcs\n%s", s.kind.WithVersion(s.path[0]), v, debug.Stack())
		}
	}()
	switch {
	case s.make != nil:
		m, err = s.make(ctx, s, src)
	case s.checkValue != nil:
		var g *typeGenerator
		if g, err = newTypeGenerator(s.registry, s.cfg, s.kind, s.path[0]); err == nil {
			m.value, err = g.value(src)
		}
	default:
		m.json, err = s.stored(ctx, s.path[0], src)
	}
	return m, err
}

// partial makes an object without some of its top-level members. The draw for those comes first, so that
// other draws do not change what is kept.
func partial(ctx context.Context, s *subject, src *choices.Source) (m sample, err error) {
	keep := src.Uint64()
	text, err := s.stored(ctx, s.path[0], src)
	if err == nil {
		m.json, err = edit(text, []byte("{}"), keep>>33)
	}
	return m, err
}

// annotated makes an object that was converted from the path's second version, and whose annotations a
// user has overwritten.
func annotated(ctx context.Context, s *subject, src *choices.Source) (m sample, err error) {
	keep := src.Uint64()
	original, before, err := s.before(ctx, src)
	if err == nil {
		m.json = overwriteAnnotations(original, before, keep)
	}
	return m, err
}

// withoutDefaults makes an object as a client sends it.
func withoutDefaults(ctx context.Context, s *subject, src *choices.Source) (m sample, err error) {
	m.json, err = s.object(ctx, s.path[0], src)
	return m, err
}

// changed makes an object of the path's first version that was converted from the second, and that a
// client has edited: top-level members in one of four objects, and one thing in the others.
func changed(ctx context.Context, s *subject, src *choices.Source) (m sample, err error) {
	which, goal := src.Uint64()>>33, src.Even() // come first, as in partial
	text, err := s.stored(ctx, s.path[0], src)
	if err != nil {
		return m, err
	}
	p := &past{}
	if p.original, p.before, err = s.before(ctx, src); err != nil {
		return m, err
	}
	m.past = p
	if which%4 > 0 {
		g, err := s.generator(s.path[0])
		if err != nil {
			return m, err
		}
		if m.json, p.edit, err = s.editOne(ctx, p.before, text, which, goalsOf(g.leaves(), goal, which%2 > 0)); p.edit != "" || err != nil {
			return m, err
		}
	}
	p.edit = "replaces top-level fields"
	if m.json, err = edit(p.before, text, which/4); err == nil && !s.accepts(ctx, m.json, p.before) {
		m.json, err = edit(p.before, text, 0)
	}
	return m, err
}

// before makes an object of the path's second version, and converts it to the first.
func (s *subject) before(ctx context.Context, src *choices.Source) (original, converted []byte, err error) {
	if original, err = s.stored(ctx, s.path[1], src); err != nil {
		return nil, nil, err
	}
	if converted, err = s.along(ctx, original, s.path[0]); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotMade, err) // which other laws report
	}
	return original, converted, nil
}

// stored makes an object of a version as the API server has it: with its defaults.
func (s *subject) stored(ctx context.Context, version string, src *choices.Source) ([]byte, error) {
	text, err := s.object(ctx, version, src)
	if err != nil || s.definition == nil {
		return text, err
	}
	return withDefaults(s.definition.Version(version), text)
}

// object makes an object of a version.
func (s *subject) object(ctx context.Context, version string, src *choices.Source) (text []byte, err error) {
	g, err := s.generator(version)
	if err == nil {
		src.Part(func() { text, err = g.object(ctx, src) })
	}
	return text, err
}

// rewrite returns what the Go type of a version writes when it has read an object, which may differ
// from the object even if the type has written it: a Quantity of 1000 is 1k once it has been read.
func rewrite(s *runtime.Scheme, kind schema.GroupVersionKind, object []byte) ([]byte, error) {
	obj, err := read(s, kind, object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// read returns an object as the Go type of a version has it.
func read(s *runtime.Scheme, kind schema.GroupVersionKind, object []byte) (runtime.Object, error) {
	obj, err := s.New(kind)
	if err != nil {
		return nil, err
	}
	return obj, json.Unmarshal(object, obj)
}

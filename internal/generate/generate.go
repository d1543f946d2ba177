package generate

import (
	"fmt"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/draw"
)

// Generator makes objects of one version of a kind. Several goroutines may use it if they may
// call valid.
type Generator struct {
	kind   schema.GroupVersionKind
	schema *structuralschema.Structural
	root   *node
	valid  func(object map[string]any) bool
	known  []*choice // of accepted objects, the smallest first
	edges  *edges
	checks func() validation.SchemaValidator // of the whole schema

	findParts sync.Once
	mutex     sync.Mutex
	loose     map[string]*node // see Outside
}

// New compiles a generator for one version of a kind. s is its schema, as
// [structuralschema.NewStructural] makes it. valid reports whether the API server would accept an
// object, which it must not change; it is for rules that no generator can aim at, those of CEL. If
// valid is nil, all objects are accepted.
//
// Values at the bounds of the schema and next to them are frequent. So are those at the bounds of
// others: the schemas of the versions that the objects will be converted to.
//
// An error names the path where no value is possible, or the number of objects that were tried if
// valid accepts none.
func New(
	kind schema.GroupVersionKind, s *structuralschema.Structural,
	valid func(object map[string]any) bool, others ...*structuralschema.Structural,
) (*Generator, error) {
	if s == nil {
		return nil, fmt.Errorf("%s: no schema", kind)
	}
	if valid == nil {
		valid = func(map[string]any) bool { return true }
	}
	all := append([]*structuralschema.Structural{s}, others...)
	c := &compiler{memo: map[string]*node{}, edges: edgesOf(all)}
	g := &Generator{
		kind: kind, schema: s, root: c.root(kind, s), valid: valid, edges: c.edges,
		loose: map[string]*node{},
	}
	if g.root.err != nil {
		return nil, fmt.Errorf("no %s can be made: %w", kind, g.root.err)
	}
	if err := g.explore(); err != nil {
		return nil, fmt.Errorf("no %s can be made: %w", kind, err)
	}
	g.checks = sync.OnceValue(func() validation.SchemaValidator { return newValidator(s) })
	return g, nil
}

// Object makes an object: apiVersion, kind, metadata as an API server may have stored it,
// and the rest by the schema. Integers are int64 and other numbers are float64, as in an
// unstructured object.
func (g *Generator) Object(src *draw.Source) (map[string]any, error) {
	which, drawn := src.Uint64(), &choice{}
	if object, ok := g.try(drawn, src); ok {
		return object, nil
	}
	g.findParts.Do(g.findRuled)
	g.repair(drawn)
	if object, ok := g.try(drawn, nil); ok {
		return object, nil
	}
	start := g.known[pick(which, len(g.known))].clone()
	object, ok := g.try(start, nil)
	if !ok {
		return nil, fmt.Errorf("%s: valid refuses an object that it accepted before", g.kind)
	}
	s := g.search(maxTries)
	s.value = object
	s.toward(start, drawn)
	return s.value.(map[string]any), nil
}

// try makes the object of choices and reports whether it is accepted. Choices that have not been
// drawn are drawn from next, or are zero if that is nil.
func (g *Generator) try(c *choice, next source) (map[string]any, bool) {
	v, err := newMaker(next).value(g.root, c)
	if err != nil {
		return nil, false
	}
	object := v.(map[string]any)
	return object, g.valid(object)
}

func (g *Generator) search(tries int) *search {
	return &search{left: tries, try: func(c *choice) (any, bool) { return g.try(c, nil) }}
}

const (
	maxExplored = 2000 // objects, until one is accepted
	enoughKnown = 8
	maxTries    = 64 // objects, for one that is wanted
)

// explore finds accepted objects for others to start from: the least, and some that differ.
func (g *Generator) explore() error {
	var unmade error
	failed, tried := 0, 0
	for ; tried < maxExplored && failed < tries && len(g.known) < enoughKnown; tried++ {
		if len(g.known) > 0 && tried > maxTries {
			break
		}
		c, next := &choice{}, source(nil)
		if tried > 0 {
			next = random(0, tried, []float64{0.9, 0.75, 0.5, 0.25, 0}[tried%5])
		}
		v, err := newMaker(next).value(g.root, c)
		if err != nil {
			failed++
			unmade = err
			continue
		}
		if !g.valid(v.(map[string]any)) {
			continue
		}
		if len(g.known) == 0 {
			g.search(4*maxTries).toward(c, &choice{})
		}
		g.known = append(g.known, c)
	}
	switch {
	case len(g.known) > 0:
		return nil
	case failed == tried:
		return unmade
	}
	return fmt.Errorf("CEL rules: %d objects tried, none is accepted; the rules may contradict each other", tried-failed)
}

package generate

import (
	"fmt"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/choices"
)

// Generator makes objects of one version of a kind. It is safe for concurrent use if validate is.
type Generator struct {
	kind     schema.GroupVersionKind
	schema   *structuralschema.Structural
	root     *node
	validate func(object map[string]any) field.ErrorList
	targets  []Target
	known    *choices.Tree // the draws of an accepted object
	edges    *edges
	checks   func() validation.SchemaValidator // of the whole schema

	mutex sync.Mutex
	loose map[string]*node // see Outside
}

// New compiles a generator for one version of a kind. s is its schema, as
// [structuralschema.NewStructural] makes it. validate returns the errors for which the API server
// would refuse an object, and must not change the object, which the generator repairs where the
// errors are. If validate is nil, all objects are accepted.
//
// Values at the bounds of the schema and next to them are frequent, and so are those of others, the
// schemas of the versions to which the objects will be converted.
//
// New returns an error that names the path where no value is possible, or the number of objects
// that were tried if validate accepts none.
func New(
	kind schema.GroupVersionKind, s *structuralschema.Structural,
	validate func(object map[string]any) field.ErrorList, others ...*structuralschema.Structural,
) (*Generator, error) {
	if s == nil {
		return nil, fmt.Errorf("%s: no schema", kind)
	}
	if validate == nil {
		validate = func(map[string]any) field.ErrorList { return nil }
	}
	all := append([]*structuralschema.Structural{s}, others...)
	c := &compiler{memo: map[string]*node{}, rules: map[string]*rules{}, edges: edgesOf(all)}
	g := &Generator{
		kind: kind, schema: s, root: c.root(kind, s), validate: validate, edges: c.edges,
		loose: map[string]*node{},
	}
	if g.root.err != nil {
		return nil, fmt.Errorf("no %s can be made: %w", kind, g.root.err)
	}
	g.targets = targets(g.root, nil, nil)
	if err := g.explore(); err != nil {
		return nil, fmt.Errorf("no %s can be made: %w", kind, err)
	}
	g.checks = sync.OnceValue(func() validation.SchemaValidator { return newValidator(s) })
	return g, nil
}

// Targets returns the leaves and lists of the schema below metadata.
func (g *Generator) Targets() []Target { return g.targets }

// Object makes an object: apiVersion, kind, metadata as an API server may have stored it,
// and the rest by the schema. Integers are int64 and other numbers are float64, as in an
// unstructured object.
func (g *Generator) Object(src *choices.Source) (map[string]any, error) {
	if object, err := g.try(src); err == nil {
		return object, nil
	}
	object, err := g.try(choices.Replay(g.known))
	if err != nil {
		return nil, fmt.Errorf("%s: validate refuses an object that it accepted before: %w", g.kind, err)
	}
	return object, nil
}

// try makes an object of draws that is accepted, perhaps after repairs.
func (g *Generator) try(src *choices.Source) (map[string]any, error) {
	m := newMaker(src)
	m.texts = map[string]string{}
	m.plan, m.budget = PlanOf(g.targets, src.Even()), Budget(src.Uint64())
	v, err := m.value(g.root)
	if err != nil {
		return nil, err
	}
	object := v.(map[string]any)
	return object, g.repair(object)
}

// maxExplored bounds the objects that are tried until one is accepted.
const maxExplored = 500

// explore finds an accepted object to fall back to, if possible the least one.
func (g *Generator) explore() (err error) {
	for i := range maxExplored {
		src := choices.New(0, "", i)
		if _, err = g.try(src); err == nil {
			g.known = src.Tree()
			return nil
		}
	}
	return fmt.Errorf("%d objects tried, none is accepted: %w", maxExplored, err)
}

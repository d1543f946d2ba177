package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"github.com/crdkit/crdkit/internal/choices"
)

type kind string

const (
	kindObject      kind = "object"
	kindArray       kind = "array"
	kindString      kind = "string"
	kindInteger     kind = "integer"
	kindNumber      kind = "number"
	kindBoolean     kind = "boolean"
	kindIntOrString kind = "integer or string"
	kindAny         kind = "any"      // type is absent
	kindMetadata    kind = "metadata" // of an object, embedded or not
)

// node makes the values at one place of a schema.
type node struct {
	path     string
	kind     kind
	err      error // why there is no value
	size     int   // the number of values in the least value
	nullable bool

	source   *structuralschema.Structural
	check    validation.SchemaValidator // of the value validations only; nil if not needed
	search   bool                       // for a value that passes check
	defaults bool                       // within
	rules    *rules                     // nil without CEL rules
	variants []*node                    // one for each choice of branches of anyOf and oneOf

	constants []any // the values of an enum or a constant

	// objects
	properties      []property // by name
	entries         *node      // of additionalProperties; nil without
	unknown         bool       // unknown fields are kept
	leastOf, mostOf int        // properties, or elements of an array
	sizes           []int      // of these to try, in ascending order
	metadataName    *node
	noPrefix        bool // the schema restricts generateName

	items             *node // arrays
	unique            bool
	keys              []int // properties of the elements that must differ together
	numbers           numbers
	texts             texts
	onlyInt, onlyText bool // integers or strings
	maxDepth          int  // of a value of any type
}

type property struct {
	name     string
	required bool
	absent   any // the default of an absent value, or nil
	*node
}

const (
	// largest bounds the size of the least object.
	largest = 1 << 13
	// many stands for infinitely many.
	many = 1 << 20
	// maxVariants bounds the variants of a node, and maxNodes those within each other.
	maxVariants, maxNodes = 64, 1 << 16
)

type compiler struct {
	nodes int
	edges *edges
	memo  map[string]*node  // by path, for schemas without further demands
	rules map[string]*rules // by path
}

// compile returns the node of a schema with additional demands.
func (c *compiler) compile(path string, s *structuralschema.Structural, more ...nestedValidation) *node {
	if len(more) > 0 {
		return c.build(path, demanding(s, more...))
	}
	if c.memo[path] == nil {
		c.memo[path] = c.build(path, s)
	}
	return c.memo[path]
}

func (c *compiler) build(path string, s *structuralschema.Structural) *node {
	c.nodes++
	n := &node{path: path, source: s, size: 1, nullable: s.Nullable, defaults: hasDefaults(s)}
	if _, ok := c.rules[path]; !ok {
		c.rules[path] = rulesOf(path, s)
	}
	n.rules = c.rules[path]
	if n.err = c.fill(n, s); n.err == nil && (n.search || n.kind == kindString || n.kind == kindNumber) {
		_, n.err = newMaker(choices.Replay(nil)).value(n)
	}
	return n
}

func (c *compiler) fill(n *node, s *structuralschema.Structural) error {
	f := flatten(s)
	n.findKind(s, f)
	groups := f.groups(s.XIntOrString)
	n.search = len(groups) > 0 || f.has(func(v *nestedValidation) bool { return v.Not != nil })
	enum := slices.IndexFunc(f, func(v nestedValidation) bool { return len(v.Enum) > 0 })
	if n.search || n.kind == kindNumber || enum >= 0 {
		n.check = newValidator(valuesOnly(s))
	}
	if enum >= 0 {
		for _, e := range f[enum].Enum {
			value := normal(e.Object)
			same := func(v any) bool { return key(v) == key(value) }
			if n.accepts(value) && !slices.ContainsFunc(n.constants, same) {
				n.constants = append(n.constants, value)
			}
		}
		if len(n.constants) == 0 && len(groups) == 0 {
			return n.fault(errors.New("no value of its enum is accepted"))
		}
		n.nullable = false // an enum refuses null, even if null is in it: see basicCommonValidator
	} else if err := c.fillKind(n, s, f); err != nil {
		return err
	}
	if len(groups) == 0 {
		return nil
	}
	return c.addVariants(n, s, f, groups)
}

// untyped returns a node for values of any type, whose objects are empty unless unknown fields are
// kept, because pruning empties objects without a schema.
func untyped(path string, keepsUnknown bool) *node {
	n := &node{path: path, kind: kindAny, size: 1, source: &structuralschema.Structural{}}
	if keepsUnknown {
		n.maxDepth = 2
	}
	return n
}

func (n *node) fault(err error) error {
	if n.path == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", n.path, err)
}

// accepts reports whether the value validations accept a value, before and after defaulting.
func (n *node) accepts(value any) bool {
	if n.check == nil {
		return true
	}
	return n.check.Validate(value).IsValid() &&
		(!n.defaults || n.check.Validate(withDefaults(value, n.source)).IsValid())
}

func (n *node) findKind(s *structuralschema.Structural, f flat) {
	switch {
	case s.XIntOrString:
		n.kind = kindIntOrString
		of := func(kind string) bool {
			return f.has(func(v *nestedValidation) bool { return v.ForbiddenGenerics.Type == kind })
		}
		n.onlyInt, n.onlyText = of("integer"), of("string")
	case s.Type != "":
		n.kind = kind(s.Type)
	case len(s.Properties) > 0 || s.AdditionalProperties != nil || s.XEmbeddedResource:
		n.kind = kindObject
	case s.Items != nil:
		n.kind = kindArray
	default:
		n.kind = kindAny
	}
}

func (c *compiler) fillKind(n *node, s *structuralschema.Structural, f flat) (err error) {
	own := s.ValueValidation
	switch n.kind {
	case kindObject:
		return c.fillObject(n, s, f)
	case kindArray:
		return c.fillArray(n, s, f)
	case kindString:
		n.texts, err = compileTexts(n.path, c.edges, f)
		n.size += n.texts.least / 64
	case kindInteger, kindNumber:
		n.numbers, err = compileNumbers(n.path, c.edges, n.kind, own, f)
	case kindIntOrString:
		var noText, noInt error
		n.texts, noText = compileTexts(n.path, c.edges, f)
		if n.numbers, noInt = compileNumbers(n.path, c.edges, n.kind, own, f); n.numbers.noInteger() {
			noInt = errors.New("no integer is accepted")
		}
		n.onlyText = n.onlyText || noInt != nil
		n.onlyInt = n.onlyInt || noText != nil
		if n.onlyInt && n.onlyText {
			err = errors.Join(errors.New("accepts neither an integer nor a string"), noText)
		}
	case kindAny:
		if s.XPreserveUnknownFields {
			n.maxDepth = 2
		}
		restricted := func(v *nestedValidation) bool { return !reflect.DeepEqual(v.ValueValidation, valueValidation{}) }
		if n.search = n.search || f.has(restricted); n.search {
			n.check = newValidator(valuesOnly(s))
		}
	}
	return n.fault(err)
}

func (n *node) tooLarge() error {
	if n.size > largest {
		return n.fault(fmt.Errorf("at least %d values; at most %d are made", n.size, largest))
	}
	return nil
}

// addVariants compiles a node for each choice of branches, or for some choices if there are many.
func (c *compiler) addVariants(n *node, s *structuralschema.Structural, f flat, groups [][]nestedValidation) error {
	combinations := 1
	for _, group := range groups {
		combinations = min(combinations*len(group), many)
	}
	step := (combinations + maxVariants - 1) / maxVariants
	var first error
	for choice := 0; choice < combinations && c.nodes < maxNodes; choice += step {
		var branches []nestedValidation
		rest := choice
		for _, group := range groups {
			branches = append(branches, group[rest%len(group)])
			rest /= len(group)
		}
		v := c.build(n.path, f.choose(s, branches))
		if v.err == nil {
			v.nullable = false // n itself is nullable
			n.variants = append(n.variants, v)
		} else if first == nil {
			first = v.err
		}
	}
	if len(n.variants) == 0 {
		return first
	}
	n.size = n.variants[0].size
	return nil
}

// key returns a value as JSON, by which equal values are equal.
func key(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible, because all values have types of JSON
	}
	return string(text)
}

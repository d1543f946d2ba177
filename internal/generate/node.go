package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
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
	kindConstant    kind = "constant"
)

// node is how the values at one place of a schema are made.
type node struct {
	path     string
	kind     kind
	err      error // why there is no value
	size     int   // of how many values the least consists
	nullable bool

	source   *structuralschema.Structural
	check    validation.SchemaValidator // of the value validations alone; nil if what is made needs none
	search   bool                       // for a value that passes check
	defaults bool                       // within
	alone    *alone                     // nil if its CEL rules cannot be looked at alone, or there are none
	variants []*node                    // one for each choice of branches of anyOf and oneOf

	constants []any // of a constant and an enum; what is made is one of them

	// objects
	properties        []property // by name
	required          map[string]bool
	entries           *node // of additionalProperties; nil if it has none
	unknown           bool  // fields that the schema does not know are kept
	leastOf, mostOf   int   // properties, or elements of an array
	sizes             []int // of these to try, in ascending order
	restricted        bool  // the number of properties is
	metadataName      *node
	metadataPrefix    *node // generateName
	items             *node // arrays
	unique            bool
	keys              []int // properties of the elements that must differ together
	numbers           numbers
	texts             texts
	onlyInt, onlyText bool // of an integer or string
	maxDepth          int  // of anything
}

type property struct {
	name     string
	required bool
	absent   any // what defaulting makes of its absence; nil if nothing
	*node
}

const (
	// largest is of how many values an object may have to consist: the source of a
	// stream of draws has no patience with more.
	largest = 1 << 13
	// many is as good as infinitely many.
	many = 1 << 20
	// maxVariants bounds how many choices of branches are made a variant of.
	maxVariants = 64
	// maxNodes bounds what variants within variants come to.
	maxNodes = 1 << 16
)

type compiler struct {
	nodes int
	edges *edges           // nil for none
	memo  map[string]*node // of what has no demands, by path
}

func (c *compiler) compile(path string, s *structuralschema.Structural, chosen bool, demands ...demand) *node {
	if len(demands) == 0 && !chosen {
		if n := c.memo[path]; n != nil {
			return n
		}
	}
	c.nodes++
	n := &node{path: path, source: s, size: 1, nullable: s.Nullable, defaults: hasDefaults(s)}
	if len(demands) == 0 && !chosen {
		c.memo[path] = n
	}
	if n.err = c.fill(n, s, chosen, demands); n.err == nil && (n.search || n.kind == kindString || n.kind == kindNumber) {
		_, n.err = newMaker(nil).value(n, &choice{}, nil)
	}
	return n
}

func (c *compiler) fill(n *node, s *structuralschema.Structural, chosen bool, demands []demand) error {
	f := flatten(s, chosen, demands)
	if err := n.findKind(s, f); err != nil {
		return err
	}
	var groups [][]structuralschema.NestedValueValidation
	for _, group := range f.groups {
		if !s.XIntOrString || !bothTypes(group) {
			groups = append(groups, group)
		}
	}
	n.search = len(groups) > 0 || f.not
	needsCheck := n.search || n.kind == kindNumber
	var enum [][]any
	for _, v := range f.all {
		if len(v.Enum) > 0 {
			var values []any
			for _, e := range v.Enum {
				values = append(values, normal(e.Object))
			}
			enum = append(enum, values)
			needsCheck = true
		}
	}
	if needsCheck {
		n.check = newValidator(valuesOnly(s, demands))
	}
	if len(enum) > 0 {
		for _, value := range enum[0] {
			if n.accepts(value) && !slices.ContainsFunc(n.constants, func(v any) bool { return key(v) == key(value) }) {
				n.constants = append(n.constants, value)
			}
		}
		if len(n.constants) == 0 && len(groups) == 0 {
			return n.fault(errors.New("no value of its enum is accepted"))
		}
		n.nullable = false // an enum refuses null, even one that has it: see basicCommonValidator
	} else if err := c.fillKind(n, s, f); err != nil {
		return err
	}
	if len(groups) == 0 {
		return nil
	}
	return c.addVariants(n, s, demands, groups)
}

func (n *node) fault(err error) error {
	if n.path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", n.path, err)
}

// accepts says whether the value validations accept a value, as it is and after defaulting.
func (n *node) accepts(value any) bool {
	if n.check == nil {
		return true
	}
	return n.check.Validate(value).IsValid() &&
		(!n.defaults || n.check.Validate(withDefaults(value, n.source)).IsValid())
}

func (n *node) findKind(s *structuralschema.Structural, f *flat) error {
	switch s.Type {
	case "object", "array", "string", "integer", "number", "boolean":
		n.kind = kind(s.Type)
	case "":
		switch n.kind = kindAny; {
		case len(s.Properties) > 0 || s.AdditionalProperties != nil || s.XEmbeddedResource:
			n.kind = kindObject
		case s.Items != nil:
			n.kind = kindArray
		}
	default:
		return n.fault(fmt.Errorf("unknown type %q", s.Type))
	}
	if s.XIntOrString {
		n.kind = kindIntOrString
		n.onlyInt, n.onlyText = slices.Contains(f.types, "integer"), slices.Contains(f.types, "string")
	}
	return nil
}

func (c *compiler) fillKind(n *node, s *structuralschema.Structural, f *flat) (err error) {
	own := s.ValueValidation
	switch n.kind {
	case kindObject:
		return c.fillObject(n, s, f)
	case kindArray:
		return c.fillArray(n, s, f)
	case kindString:
		n.texts, err = compileTexts(n.path, c.edges, f.all)
		n.size += n.texts.least / 64
	case kindInteger, kindNumber:
		n.numbers, err = compileNumbers(n.path, c.edges, n.kind, own, f.all)
		if n.kind == kindNumber && !n.numbers.bounded && !n.search {
			n.check = nil
		}
	case kindIntOrString:
		var noText, noInt error
		n.texts, noText = compileTexts(n.path, c.edges, f.all)
		if n.numbers, noInt = compileNumbers(n.path, c.edges, n.kind, own, f.all); n.numbers.whole() == 0 {
			noInt = errors.New("no integer is accepted")
		}
		n.onlyText = n.onlyText || noInt != nil
		n.onlyInt = n.onlyInt || noText != nil
		if n.onlyInt && n.onlyText {
			err = errors.Join(errors.New("neither an integer nor a string is accepted"), noText)
		}
	case kindAny:
		n.maxDepth = 2
		if !s.XPreserveUnknownFields {
			n.maxDepth = 0
		}
		if n.search = n.search || hasValues(f.all); n.search {
			n.check = newValidator(valuesOnly(s, f.demands))
		}
	}
	if err != nil {
		return n.fault(err)
	}
	return nil
}

func (n *node) tooLarge() error {
	if n.size > largest {
		return n.fault(fmt.Errorf("it has at least %d values: no more than %d are made", n.size, largest))
	}
	return nil
}

// addVariants makes a node of each choice of branches, unless there are too many.
func (c *compiler) addVariants(n *node, s *structuralschema.Structural, demands []demand, groups [][]structuralschema.NestedValueValidation) error {
	choices := 1
	for _, group := range groups {
		choices = min(choices*len(group), many)
	}
	step := (choices + maxVariants - 1) / maxVariants
	opened := make([]demand, len(demands))
	for i, d := range demands {
		opened[i] = demand{d.NestedValueValidation, true}
	}
	var first error
	for choice := 0; choice < choices && c.nodes < maxNodes; choice += step {
		all := slices.Clip(opened)
		rest := choice
		for _, group := range groups {
			all = append(all, demand{NestedValueValidation: &group[rest%len(group)]})
			rest /= len(group)
		}
		v := c.compile(n.path, s, true, all...)
		if v.err == nil {
			v.nullable = false // has been said
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

// key is the same for values that are the same in JSON.
func key(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of what JSON has
	}
	return string(text)
}

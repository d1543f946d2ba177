package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/validate"
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
	check    *validate.SchemaValidator // of the value validations alone; nil if what is made needs none
	search   bool                      // for a value that passes check
	defaults bool                      // within
	alone    *alone                    // nil if its CEL rules cannot be looked at alone, or there are none
	variants []*node                   // one for each choice of branches of anyOf and oneOf

	constants []any // of a constant and an enum; what is made is one of them

	// objects
	properties        []property // by name
	required          map[string]bool
	entries           *node // of additionalProperties; nil if it has none
	unknown           bool  // fields that the schema does not know are kept
	leastOf, mostOf   int   // properties, or elements of an array
	restricted        bool  // the number of properties is
	metadataName      *node
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

// demand is a nested value validation that values must obey beside those of the schema.
type demand struct {
	*structuralschema.NestedValueValidation
	chosen bool // of its anyOf and oneOf, branches are demanded too
}

type compiler struct {
	nodes int
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
		n.texts, err = compileTexts(f.all)
		n.size += n.texts.least / 64
	case kindInteger, kindNumber:
		n.numbers, err = compileNumbers(n.kind, own, f.all)
		if n.kind == kindNumber && !n.numbers.bounded && !n.search {
			n.check = nil
		}
	case kindIntOrString:
		var noText, noInt error
		n.texts, noText = compileTexts(f.all)
		if n.numbers, noInt = compileNumbers(n.kind, own, f.all); n.numbers.whole() == 0 {
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

func (c *compiler) fillObject(n *node, s *structuralschema.Structural, f *flat) error {
	n.required, n.mostOf = map[string]bool{}, math.MaxInt32
	for _, v := range f.all {
		for _, name := range v.Required {
			n.required[name] = true
		}
		n.leastOf = max(n.leastOf, limit(v.MinProperties, 0))
		n.mostOf = min(n.mostOf, limit(v.MaxProperties, math.MaxInt32))
		n.restricted = n.restricted || v.MinProperties != nil || v.MaxProperties != nil
	}
	n.unknown = s.XPreserveUnknownFields
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range names {
		p := s.Properties[name]
		if s.XEmbeddedResource && isMeta(name) {
			continue
		}
		demands := f.property(name)
		n.properties = append(n.properties, property{
			name: name, required: n.required[name] || !validDefault(&p, demands), absent: p.Default.Object,
			node: c.compile(below(n.path, name), &p, false, demands...),
		})
	}
	if s.XEmbeddedResource {
		n.properties = append(n.properties, c.embedded(n.path, s, f)...)
	}
	if a := s.AdditionalProperties; a != nil {
		switch {
		case a.Structural != nil:
			n.entries = c.compile(n.path+"[*]", a.Structural, false, f.entries()...)
		case a.Bool:
			// pruning empties objects of which it knows no schema
			n.entries = &node{path: n.path + "[*]", kind: kindAny, size: 1, source: &structuralschema.Structural{}}
			if n.unknown {
				n.entries.maxDepth = 2
			}
		}
		if n.entries != nil && n.entries.err != nil && n.leastOf <= len(n.properties) {
			n.entries = nil
		}
	}
	n.search = n.search || f.undeclared(s)
	if n.search && n.check == nil {
		n.check = newValidator(valuesOnly(s, f.demands))
	}
	return n.measure()
}

// validDefault says whether the absence of a field is accepted once it has its default.
func validDefault(s *structuralschema.Structural, demands []demand) bool {
	if s.Default.Object == nil {
		return true
	}
	value := withDefaults(s.Default.Object, s)
	return newValidator(s).Validate(value).IsValid() && newValidator(valuesOnly(s, demands)).Validate(value).IsValid()
}

// measure returns an error if there is no object. It is the last step, for all properties
// must be known.
func (n *node) measure() error {
	n.size = 1
	must := 0
	for _, p := range n.properties {
		if p.required {
			must++
			if p.err != nil {
				return p.err
			}
			n.size += p.size
		}
	}
	for name := range n.required {
		if !slices.ContainsFunc(n.properties, func(p property) bool { return p.name == name }) {
			must++
			if n.entries == nil && !n.unknown {
				return n.fault(fmt.Errorf("%s is required, but not a property", name))
			}
			n.size++
		}
	}
	possible, stay := must, must
	for _, p := range n.properties {
		if !p.required && p.err == nil {
			possible++
		}
		if !p.required && p.absent != nil {
			stay++
		}
	}
	switch {
	case stay > n.mostOf:
		return n.fault(fmt.Errorf("at most %d properties, but %d are required or have a default", n.mostOf, stay))
	case n.leastOf > n.mostOf:
		return n.fault(fmt.Errorf("at least %d properties, and at most %d", n.leastOf, n.mostOf))
	case n.leastOf > possible && n.entries == nil && !n.unknown:
		return n.fault(fmt.Errorf("at least %d properties, but only %d are possible", n.leastOf, possible))
	case n.leastOf > possible && n.entries != nil && n.entries.err != nil:
		return n.entries.err
	}
	each := 1
	if n.entries != nil {
		each = n.entries.size
	}
	n.size += max(0, min(n.leastOf, many)-must) * each
	return n.tooLarge()
}

func (n *node) tooLarge() error {
	if n.size > largest {
		return n.fault(fmt.Errorf("it has at least %d values: no more than %d are made", n.size, largest))
	}
	return nil
}

func (c *compiler) fillArray(n *node, s *structuralschema.Structural, f *flat) error {
	n.mostOf = math.MaxInt32
	for _, v := range f.all {
		n.leastOf = max(n.leastOf, limit(v.MinItems, 0))
		n.mostOf = min(n.mostOf, limit(v.MaxItems, math.MaxInt32))
		n.unique = n.unique || v.UniqueItems
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		n.unique = true
	}
	switch {
	case s.Items != nil:
		n.items = c.compile(n.path+"[*]", s.Items, false, f.items()...)
	case s.XPreserveUnknownFields:
		n.items = &node{path: n.path + "[*]", kind: kindAny, size: 1, maxDepth: 2, source: &structuralschema.Structural{}}
	default:
		n.items = &node{path: n.path + "[*]", kind: kindAny, size: 1, source: &structuralschema.Structural{}}
	}
	if s.XListType != nil && *s.XListType == "map" {
		for _, name := range s.XListMapKeys {
			i := slices.IndexFunc(n.items.properties, func(p property) bool { return p.name == name })
			if i >= 0 {
				n.keys = append(n.keys, i)
			}
		}
		items := *n.items
		items.nullable = false // an element without keys
		n.items = &items
	}
	if n.items.err != nil {
		if n.leastOf > 0 {
			return n.items.err
		}
		n.mostOf = 0
	}
	if n.unique && n.items.err == nil {
		n.mostOf = min(n.mostOf, n.different())
	}
	if n.leastOf > n.mostOf {
		return n.fault(fmt.Errorf("at least %d elements, and at most %d", n.leastOf, n.mostOf))
	}
	n.size += min(n.leastOf, many) * n.items.size
	return n.tooLarge()
}

// different is how many elements can be different.
func (n *node) different() int {
	if n.keys == nil {
		return n.items.values()
	}
	d := 1
	for _, i := range n.keys {
		d = min(d*n.items.properties[i].values(), many)
	}
	return d
}

// values is how many values there are, or more.
func (n *node) values() int {
	d := many
	switch {
	case n.constants != nil:
		d = len(n.constants)
	case n.kind == kindBoolean:
		d = 2
	case n.kind == kindInteger:
		d = n.numbers.whole()
	case n.kind == kindString && n.texts.most == 0:
		d = 1
	}
	if n.nullable {
		d++
	}
	return d
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

// bothTypes says whether branches say of an integer or string that it is one.
func bothTypes(group []structuralschema.NestedValueValidation) bool {
	return len(group) == 2 && group[0].ForbiddenGenerics.Type == "integer" && group[1].ForbiddenGenerics.Type == "string"
}

// valuesOnly is a schema without its structure.
func valuesOnly(s *structuralschema.Structural, demands []demand) *structuralschema.Structural {
	out := &structuralschema.Structural{}
	out.Type, out.Nullable, out.XIntOrString = s.Type, s.Nullable, s.XIntOrString
	v := &structuralschema.ValueValidation{}
	if s.ValueValidation != nil {
		*v = *s.ValueValidation
	}
	v.AllOf = slices.Clip(v.AllOf)
	for _, d := range demands {
		v.AllOf = append(v.AllOf, *d.NestedValueValidation)
	}
	out.ValueValidation = v
	return out
}

// hasValues says whether value validations say anything.
func hasValues(all []*structuralschema.ValueValidation) bool {
	return slices.ContainsFunc(all, func(v *structuralschema.ValueValidation) bool {
		return !reflect.DeepEqual(*v, structuralschema.ValueValidation{AllOf: v.AllOf})
	})
}

// flat is what all the demands on a value come to.
type flat struct {
	demands []demand
	all     []*structuralschema.ValueValidation // each must hold
	nested  []*structuralschema.NestedValueValidation
	groups  [][]structuralschema.NestedValueValidation // one of each must hold
	not     bool
	types   []string
}

func flatten(s *structuralschema.Structural, chosen bool, demands []demand) *flat {
	f := &flat{demands: demands}
	if s.ValueValidation != nil {
		f.add(s.ValueValidation, chosen)
	}
	for _, d := range demands {
		f.addNested(d.NestedValueValidation, d.chosen)
	}
	return f
}

func (f *flat) add(v *structuralschema.ValueValidation, chosen bool) {
	f.all = append(f.all, v)
	if !chosen {
		for _, group := range [][]structuralschema.NestedValueValidation{v.OneOf, v.AnyOf} {
			if len(group) > 0 {
				f.groups = append(f.groups, group)
			}
		}
		f.not = f.not || v.Not != nil
	}
	for i := range v.AllOf {
		f.addNested(&v.AllOf[i], chosen)
	}
}

func (f *flat) addNested(v *structuralschema.NestedValueValidation, chosen bool) {
	f.add(&v.ValueValidation, chosen)
	f.nested = append(f.nested, v)
	if t := v.ForbiddenGenerics.Type; t != "" {
		f.types = append(f.types, t)
	}
}

func (f *flat) property(name string) (out []demand) {
	for _, v := range f.nested {
		if p, ok := v.Properties[name]; ok {
			out = append(out, demand{NestedValueValidation: &p})
		} else if v.AdditionalProperties != nil {
			out = append(out, demand{NestedValueValidation: v.AdditionalProperties})
		}
	}
	return out
}

func (f *flat) items() (out []demand) {
	for _, v := range f.nested {
		if v.Items != nil {
			out = append(out, demand{NestedValueValidation: v.Items})
		}
	}
	return out
}

func (f *flat) entries() (out []demand) {
	for _, v := range f.nested {
		if v.AdditionalProperties != nil {
			out = append(out, demand{NestedValueValidation: v.AdditionalProperties})
		}
	}
	return out
}

// undeclared says whether something is demanded of fields that are no properties.
func (f *flat) undeclared(s *structuralschema.Structural) bool {
	for _, v := range f.nested {
		if v.AdditionalProperties != nil && s.AdditionalProperties == nil && s.XPreserveUnknownFields {
			return true
		}
		for name := range v.Properties {
			if _, ok := s.Properties[name]; !ok {
				return true
			}
		}
	}
	return false
}

// key is the same for values that are the same in JSON.
func key(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of what JSON has
	}
	return string(text)
}

func isMeta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// root compiles the schema of a version.
func (c *compiler) root(gvk schema.GroupVersionKind, s *structuralschema.Structural) *node {
	whole := *s
	whole.Type, whole.Nullable, whole.XEmbeddedResource = "object", false, true
	out := c.compile("", &whole, false)
	out.fix(gvk)
	return out
}

// fix says what the apiVersion and kind of the root are.
func (n *node) fix(gvk schema.GroupVersionKind) {
	for i := range n.properties {
		switch p := &n.properties[i]; p.name {
		case "apiVersion":
			p.node = constant("apiVersion", gvk.GroupVersion().String())
		case "kind":
			p.node = constant("kind", gvk.Kind)
		case "metadata":
			p.required = true
		}
	}
	for _, v := range n.variants {
		v.fix(gvk)
	}
}

func constant(path, value string) *node {
	return &node{path: path, kind: kindConstant, size: 1, constants: []any{value}, source: &structuralschema.Structural{}}
}

// embedded returns what each object has. See
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta.
func (c *compiler) embedded(path string, s *structuralschema.Structural, f *flat) []property {
	text := func(path string, in map[string]structuralschema.Structural, name string, demands ...demand) *node {
		s, ok := in[name]
		if !ok || s.Type != "string" {
			s = structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
		}
		s.Nullable = false
		return c.compile(below(path, name), &s, false, demands...)
	}
	must := func(v structuralschema.ValueValidation) demand {
		return demand{NestedValueValidation: &structuralschema.NestedValueValidation{ValueValidation: v}}
	}
	metadata := s.Properties["metadata"]
	of := flatten(&metadata, false, f.property("metadata"))
	longest := int64(63)
	return []property{
		{name: "apiVersion", required: true, node: text(path, s.Properties, "apiVersion",
			append(f.property("apiVersion"), must(structuralschema.ValueValidation{Pattern: `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?v[1-9][a-z0-9]*$`}))...)},
		{name: "kind", required: true, node: text(path, s.Properties, "kind",
			append(f.property("kind"), must(structuralschema.ValueValidation{MaxLength: &longest, Pattern: `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`}))...)},
		{name: "metadata", required: f.requires("metadata"), node: &node{
			path: below(path, "metadata"), kind: kindMetadata, size: 1, source: &structuralschema.Structural{},
			metadataName: text(below(path, "metadata"), metadata.Properties, "name",
				append(of.property("name"), must(structuralschema.ValueValidation{Format: "k8s-long-name"}))...),
		}},
	}
}

func (f *flat) requires(name string) bool {
	return slices.ContainsFunc(f.all, func(v *structuralschema.ValueValidation) bool { return slices.Contains(v.Required, name) })
}

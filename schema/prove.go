package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

const (
	// fewTries bounds how many objects of the leanest schema are judged for one change,
	// proofTries how many of the lean one.
	fewTries, proofTries = 50, 300
	// proofTime bounds the time for them, allTime that for all changes of a version, and
	// netTime that for the random search in it.
	proofTime, allTime, netTime = 5 * time.Second, time.Minute, 5 * time.Second
	// netObjects is how many random objects are judged.
	netObjects = 100
	// maxUnnamed bounds how many changes it finds.
	maxUnnamed = 20
)

// verdict is what two definitions make of an object.
type verdict struct {
	object   map[string]any
	accepted bool // by the old one
	errs     field.ErrorList
	altered  []alteration
}

// alteration is a difference of what is stored.
type alteration struct{ path, text string }

func (v verdict) broken() bool { return v.accepted && (len(v.errs) > 0 || len(v.altered) > 0) }

// of is the part of a verdict that shows a change at some places, each with dots alone.
func (v verdict) of(c *change, places []string) verdict {
	in := func(path string) bool {
		return slices.ContainsFunc(places, func(p string) bool { return path == p || c.shown&inside != 0 && under(path, p) })
	}
	v.errs = slices.DeleteFunc(slices.Clone(v.errs), func(err *field.Error) bool {
		return c.shown&refused == 0 || !in(errorPath(err)) || !saying(err, c.says)
	})
	v.altered = slices.DeleteFunc(slices.Clone(v.altered), func(a alteration) bool {
		return c.shown&altered == 0 || !in(dotted(a.path))
	})
	return v
}

// proof is nil if nothing is broken.
func (v verdict) proof() *Proof {
	if !v.broken() {
		return nil
	}
	object, err := json.Marshal(v.object)
	if err != nil {
		return nil
	}
	p := &Proof{Object: object, Errors: v.errs}
	for _, a := range v.altered {
		p.Altered = append(p.Altered, a.path+": "+a.text)
	}
	return p
}

// judge puts an object to the same version of both definitions.
func (b *breaking) judge(was, is *Version, object map[string]any) verdict {
	v := verdict{object: object}
	before, errs := b.store(was, object)
	if len(errs) > 0 {
		return v
	}
	v.accepted = true
	var after map[string]any
	if after, v.errs = b.store(is, object); after != nil {
		was.Prune(after) // what a client of the old definition does not see
		differ(before, after, "", func(path, text string) { v.altered = append(v.altered, alteration{path, text}) })
	}
	return v
}

// store returns an object as it is read back after it has been created, with its
// status, whatever kind and scope the definition has; or as it would be, if there are
// errors.
func (b *breaking) store(v *Version, object map[string]any) (map[string]any, field.ErrorList) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	u.SetAPIVersion(v.apiVersion())
	u.SetKind(v.definition.crd.Spec.Names.Kind)
	unreadable := func(err error) field.ErrorList {
		return field.ErrorList{field.Invalid(nil, nil, err.Error())}
	}
	if _, err := v.definition.schemas.Coerce(u, pipeline.Coercion{}); err != nil {
		return nil, unreadable(err)
	}
	v.definition.schemas.SetDefaults(u)
	errs := v.Validate(b.ctx, u.Object)
	if storage := v.definition.storage; storage != v.name && v.definition.crd.Spec.Conversion.Strategy == "None" {
		err := v.definition.convert(u, storage)
		if err == nil {
			err = v.restore(u)
		}
		if err != nil {
			return nil, append(errs, unreadable(err)...)
		}
	}
	return u.Object, errs
}

// differ reports what differs between two values, but for what says what an object is.
func differ(before, after any, path string, report func(path, text string)) {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(b)
		maps.Copy(names, a)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if path == "" && (name == "metadata" || name == "kind" || name == "apiVersion") {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			switch was, there := b[name]; {
			case !there:
				report(at, text(a[name])+", was not there")
			case !has(a, name):
				report(at, "removed, was "+text(was))
			default:
				differ(was, a[name], at, report)
			}
		}
		return
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range b {
			differ(b[i], a[i], path+"["+strconv.Itoa(i)+"]", report)
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		report(path, text(after)+", was "+text(before))
	}
}

func has(m map[string]any, name string) bool { _, ok := m[name]; return ok }

// least returns a small object of a version, and nil if there is none.
func (b *breaking) least(v *Version) json.RawMessage {
	if v.structural == nil {
		return nil
	}
	g, err := generate.New(v.gvk(), lean(v.structural, nil), func(object map[string]any) bool {
		_, errs := b.store(v, object)
		return len(errs) == 0 && b.ctx.Err() == nil
	})
	if err != nil {
		return nil
	}
	object, err := g.Object(rand.New(draw.Replay(nil)))
	if err != nil {
		return nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return data
}

// search looks for objects that show breaking changes of a version.
type search struct {
	*breaking
	was, is *Version
	changes []*change
	until   time.Time // for all of them
}

func newSearch(b *breaking, was, is *Version, changes []*change) *search {
	return &search{breaking: b, was: was, is: is, changes: changes, until: time.Now().Add(allTime)}
}

// errEnough is what ends a generator that has made enough objects in vain: it panics in the
// function that judges them, and nobody uses that generator again.
var errEnough = errors.New("enough")

// enough calls f, and returns early if it panics with errEnough.
func enough(f func()) {
	defer func() {
		if r := recover(); r != nil && r != any(errEnough) {
			panic(r)
		}
	}()
	f()
}

// prove returns a small object that shows a change, or nil. It is made of a part of the old
// schema, which is changed.
func (s *search) prove(c *change, structural *structuralschema.Structural, tries int) (proof *Proof) {
	if narrow(structural, c.steps, c.narrow) {
		enough(func() { proof = s.proveWith(c, structural, tries) })
	}
	return proof
}

func (s *search) proveWith(c *change, structural *structuralschema.Structural, tries int) *Proof {
	until, left := time.Now().Add(proofTime), tries
	g, err := generate.New(s.was.gvk(), structural, func(object map[string]any) bool {
		if left--; left < 0 || time.Now().After(until) || time.Now().After(s.until) || s.ctx.Err() != nil {
			panic(errEnough)
		}
		_, ok := s.shows(c, object)
		return ok
	})
	if err != nil {
		return nil
	}
	left = proofTries                                   // again
	object, err := g.Object(rand.New(draw.Replay(nil))) // the least one
	if err != nil {
		return nil
	}
	if v, ok := s.shows(c, object); ok {
		return v.proof()
	}
	return nil
}

// shows says whether an object, with what the change puts into it, shows a change.
func (s *search) shows(c *change, object map[string]any) (verdict, bool) {
	places := placesOf(object, c.steps)
	if len(places) == 0 {
		return verdict{}, false
	}
	if c.put != nil {
		copied := runtime.DeepCopyJSON(object)
		value, ok := c.put(places[0].value)
		if !ok {
			return verdict{}, false
		}
		if object, ok = replace(copied, places[0].keys, runtime.DeepCopyJSONValue(value)).(map[string]any); !ok {
			return verdict{}, false
		}
	}
	var paths []string
	for _, p := range places {
		paths = append(paths, c.about(p))
	}
	v := s.judge(s.was, s.is, object).of(c, paths)
	return v, v.broken()
}

// about is the path, with dots alone, that a change at a place is about.
func (c *change) about(p placed) string {
	if c.child == "" {
		return p.path
	}
	return strings.TrimPrefix(p.path+"."+c.child, ".")
}

func saying(err *field.Error, words []string) bool {
	text := err.Error()
	return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Paths are compared with dots alone: some errors have the keys of maps in brackets.
var bracket = regexp.MustCompile(`\[([^]]*)\]`)

func dotted(path string) string {
	return strings.TrimPrefix(bracket.ReplaceAllString(strings.TrimPrefix(path, "<nil>"), ".$1"), ".")
}

// Errors of compositions have their path in the text, and so have some of numbers: "spec"
// must validate at least one schema (anyOf), and: Checked value must be of type integer
// with format int32 in spec.size.
var composed = regexp.MustCompile(`^"([^"]*)" must | in (\S+)$`)

func errorPath(err *field.Error) string {
	path := dotted(err.Field)
	if m := composed.FindStringSubmatch(err.Detail); path == "" && m != nil {
		path = dotted(m[1] + m[2])
	}
	return path
}

// under says whether a path is another one, or below it.
func under(path, at string) bool {
	rest, ok := strings.CutPrefix(path, at)
	return ok && (at == "" || rest == "" || rest[0] == '.')
}

// placed is a value in an object.
type placed struct {
	path  string // with dots alone
	keys  []any  // string or int
	value any
}

// placesOf returns the values that steps lead to.
func placesOf(value any, steps []string) (all []placed) {
	if len(steps) == 0 {
		return []placed{{value: value}}
	}
	visit := func(key any, child any) {
		for _, p := range placesOf(child, steps[1:]) {
			p.path = strings.TrimSuffix(fmt.Sprint(key)+"."+p.path, ".")
			p.keys = append([]any{key}, p.keys...)
			all = append(all, p)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if steps[0] == anyValue {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(name, v[name])
			}
		} else if child, ok := v[steps[0]]; ok {
			visit(steps[0], child)
		}
	case []any:
		for i := range v {
			if steps[0] == anyItem {
				visit(i, v[i])
			}
		}
	}
	return all
}

// replace puts a value in a place.
func replace(in any, keys []any, value any) any {
	if len(keys) == 0 {
		return value
	}
	switch v := in.(type) {
	case map[string]any:
		v[keys[0].(string)] = replace(v[keys[0].(string)], keys[1:], value)
	case []any:
		v[keys[0].(int)] = replace(v[keys[0].(int)], keys[1:], value)
	}
	return in
}

// leanest copies a schema without the fields that are neither required, nor on the way to a
// place, nor right below it: its objects are small.
func leanest(s *structuralschema.Structural, steps []string) *structuralschema.Structural {
	return leave(s, steps, true, func(string) bool { return false })
}

// lean is leanest, but with the fields that are in the rules of what is around them.
func lean(s *structuralschema.Structural, steps []string) *structuralschema.Structural {
	var rules strings.Builder
	var collect func(s *structuralschema.Structural)
	collect = func(s *structuralschema.Structural) {
		for _, rule := range s.XValidations {
			rules.WriteString(rule.Rule)
		}
		for _, p := range s.Properties {
			collect(&p)
		}
		if s.Items != nil {
			collect(s.Items)
		}
		if a := s.AdditionalProperties; a != nil && a.Structural != nil {
			collect(a.Structural)
		}
	}
	collect(s)
	return leave(s, steps, true, func(name string) bool { return strings.Contains(rules.String(), "."+name) })
}

// leave copies a schema, and leaves out fields that are not wanted. onWay says that the
// steps lead on from here.
func leave(s *structuralschema.Structural, steps []string, onWay bool, wanted func(name string) bool) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	out := *s
	if s.ValueValidation != nil {
		out.ValueValidation = s.ValueValidation.DeepCopy()
	}
	step, rest := "", []string(nil)
	if len(steps) > 0 {
		step, rest = steps[0], steps[1:]
	}
	atPlace := onWay && len(steps) == 0
	part := func(p *structuralschema.Structural, name string) *structuralschema.Structural {
		if onWay && len(steps) > 0 && name == step {
			return leave(p, rest, true, wanted)
		}
		return leave(p, nil, false, wanted)
	}
	out.Items = part(s.Items, anyItem)
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: part(a.Structural, anyValue)}
	}
	needed := map[string]bool{step: true}
	all := needs(orNone(s.ValueValidation), needed)
	out.Properties = nil
	for name, p := range s.Properties {
		if all || atPlace || needed[name] || p.Default.Object != nil || wanted(name) {
			if out.Properties == nil {
				out.Properties = map[string]structuralschema.Structural{}
			}
			out.Properties[name] = *part(&p, name)
		}
	}
	return &out
}

// needs collects the fields that a validation mentions, and says whether it is about their
// number.
func needs(v *structuralschema.ValueValidation, names map[string]bool) (all bool) {
	for _, name := range v.Required {
		names[name] = true
	}
	all = v.MinProperties != nil
	nested := slices.Concat(v.AllOf, v.AnyOf, v.OneOf)
	if v.Not != nil {
		nested = append(nested, *v.Not)
	}
	for _, n := range nested {
		for name := range n.Properties {
			names[name] = true
		}
		all = needs(&n.ValueValidation, names) || all
	}
	return all
}

// narrow changes a schema so that each object has something at a place, and there what
// change wants. It says whether the schema leads there.
func narrow(s *structuralschema.Structural, steps []string, change func(*structuralschema.Structural)) bool {
	if len(steps) == 0 {
		if change != nil {
			change(s)
		}
		return true
	}
	if s.ValueValidation == nil {
		s.ValueValidation = &structuralschema.ValueValidation{}
	}
	v := s.ValueValidation
	switch name := steps[0]; {
	case name == anyItem && s.Items != nil:
		v.MinItems = new1(max(1, int64(or(asFloat(v.MinItems), 1))))
		return narrow(s.Items, steps[1:], change)
	case name == anyValue && s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		nonempty(s)
		return narrow(s.AdditionalProperties.Structural, steps[1:], change)
	case name == anyValue && s.AdditionalProperties != nil:
		nonempty(s)
		return len(steps) == 1
	}
	p, ok := s.Properties[steps[0]]
	if !ok {
		return false
	}
	p.Nullable = p.Nullable && len(steps) == 1 && change == nil // null has nothing below it
	if !narrow(&p, steps[1:], change) {
		return false
	}
	s.Properties[steps[0]] = p
	if !slices.Contains(v.Required, steps[0]) {
		v.Required = append(v.Required, steps[0])
	}
	return true
}

// net puts random objects of the old schema to the new one, and adds what no change
// explains.
func (s *search) net() { enough(s.random) }

func (s *search) random() {
	until := time.Now().Add(netTime)
	over := func() bool { return time.Now().After(until) || s.ctx.Err() != nil }
	g, err := generate.New(s.was.gvk(), s.was.structural, func(object map[string]any) bool {
		if over() {
			panic(errEnough)
		}
		_, errs := s.store(s.was, object)
		return len(errs) == 0
	})
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for i := 0; i < netObjects && len(seen) < maxUnnamed && !over(); i++ {
		src := draw.New(1, s.was.name, i)
		object, err := g.Object(rand.New(src))
		if err != nil {
			return
		}
		v := s.judge(s.was, s.is, object)
		path, what, found := s.unexplained(v)
		if !found || seen[path] {
			continue
		}
		seen[path] = true
		small, _ := draw.Shrink(draw.Shrinker{Tries: proofTries, Time: proofTime}, sized(v, src.Stream()), func(stream []uint64) (none draw.Found[verdict], ok bool) {
			src := draw.Replay(stream)
			object, err := g.Object(rand.New(src))
			if err != nil {
				return none, false
			}
			v := s.judge(s.was, s.is, object)
			if at, _, ok := s.unexplained(v); !ok || at != path {
				return none, false
			}
			return sized(v, src.Stream()), true
		})
		s.changes = append(s.changes, &change{
			BreakingChange: BreakingChange{Version: s.was.name, Path: path, What: what, Why: "a random object shows it", Proof: small.Value.proof()},
			steps:          stepsOf(path),
			shown:          refused | altered,
		})
	}
}

// sized says how long an object is, for the shrinker.
func sized(v verdict, stream []uint64) draw.Found[verdict] {
	size := math.MaxInt
	if data, err := json.Marshal(v.object); err == nil {
		size = len(data)
	}
	return draw.Found[verdict]{Value: v, Size: size, Stream: stream}
}

// unexplained returns the path of something that is broken in an object, and that no change
// is about.
func (s *search) unexplained(v verdict) (path, what string, found bool) {
	if !v.broken() {
		return "", "", false
	}
	known := func(at string, by shown) bool {
		return slices.ContainsFunc(s.changes, func(c *change) bool {
			return c.shown&by != 0 && slices.ContainsFunc(placesOf(v.object, c.steps), func(p placed) bool { return under(at, c.about(p)) })
		})
	}
	for _, err := range v.errs {
		at := errorPath(err)
		if strings.HasPrefix(err.Detail, "some validation rules were not checked") || known(at, refused) {
			continue
		}
		return general(at, v.object), "values that were accepted are refused", true
	}
	for _, a := range v.altered {
		if at := dotted(a.path); !known(at, altered) {
			return general(at, v.object), "values are stored otherwise than before", true
		}
	}
	return "", "", false
}

// general is a path with [] for the items of lists.
func general(path string, object map[string]any) string {
	var steps []string
	var value any = object
	for _, name := range strings.Split(path, ".") {
		switch v := value.(type) {
		case []any:
			steps = append(steps, anyItem)
			if i, err := strconv.Atoi(name); err == nil && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			steps = append(steps, name)
			value = v[name]
		default:
			steps = append(steps, name)
		}
	}
	return pathOf(steps)
}

// stepsOf is the reverse of pathOf.
func stepsOf(path string) (steps []string) {
	for _, name := range strings.Split(strings.ReplaceAll(path, anyItem, "."+anyItem), ".") {
		if name != "" {
			steps = append(steps, name)
		}
	}
	return steps
}

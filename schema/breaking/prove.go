package breaking

import (
	"maps"
	randv2 "math/rand/v2"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
)

// A search is bounded by the number of objects, not by time: it finds the same on each machine.
const (
	// guidedTries is how many objects are judged from one object on, and proofTries how many random
	// objects are made for one change.
	guidedTries, proofTries = 400, 60
	// randomTries is how many objects are judged from one random object on.
	randomTries = 20
	// pairObjects is of how many objects updates are made.
	pairObjects = 24
	// graftTries is how many values are tried in one sample.
	graftTries = 20
	// shrinkTries is how many objects are judged to make a proof smaller.
	shrinkTries = 400
)

// search looks for objects that show breaking changes of a version.
type search struct {
	*upgrade
	was, is *version
	rules   string         // of the old schema
	made    map[string]any // the least values, by their paths
	left    int            // objects that may still be judged in a way to a proof
}

func newSearch(up *upgrade, was, is *version) *search {
	return &search{upgrade: up, was: was, is: is, rules: rulesOf(was.structural), made: map[string]any{}}
}

// mentioned reports whether some rule of the old schema seems to be about a field of that name:
// all that begins with the name counts, too.
func (s *search) mentioned(name string) bool { return strings.Contains(s.rules, "."+name) }

// prove looks for a proof of a change.
func (s *search) prove(c *change) {
	for i, way := range []func(*change) verdict{s.known, s.construct, s.sampled, s.seek} {
		if v := way(c); v.broken() {
			if i > 0 { // what is known is small
				v = s.smaller(c, v)
			}
			v.blocked = len(v.errs) > 0 && s.blocks(s.is, v.kept)
			c.Proof = v.proof()
			s.proven[c.Path+c.What] = append(s.proven[c.Path+c.What], v)
			return
		}
	}
}

// known tries what proves the same change of another version.
func (s *search) known(c *change) (v verdict) {
	for _, other := range s.proven[c.Path+c.What] {
		w := other.write
		w.object = s.ofVersion(w.object)
		if w.stored != nil {
			w.stored = s.ofVersion(w.stored)
		}
		if v = s.check(c, w); v.broken() {
			break
		}
	}
	return v
}

func (s *search) ofVersion(object map[string]any) map[string]any {
	object = maps.Clone(object)
	object["apiVersion"] = s.was.gvk.GroupVersion().String()
	return object
}

// construct starts with the least object that should show a change.
func (s *search) construct(c *change) (v verdict) {
	part := portion{whole: c.child == "", rules: s.rules + c.rule}.part(s.was.structural, c.steps)
	g := s.generator(c, part)
	if g == nil {
		return v
	}
	object, err := drawn(g, draw.Replay(nil))
	if err != nil {
		return v
	}
	if c.Path == "metadata.generateName" { // it is only there if a client wants a name
		prefix := s.was.structural.Properties["metadata"].Properties["generateName"]
		prefix.ValueValidation = prefix.ValueValidation.DeepCopy()
		if c.narrow != nil {
			c.narrow(&prefix)
		}
		object["metadata"].(map[string]any)["generateName"] = leastOf(&prefix)
	}
	if c.updates {
		if v = s.pair(c, object, nil); v.broken() || !c.creates {
			return v
		}
	}
	return s.guided(c, object, guidedTries)
}

// sampled looks for a sample that shows a change: as it is, without the field that the change is
// about, or with another value at the place, or around it.
func (s *search) sampled(c *change) (v verdict) {
	if !c.creates {
		return v
	}
	part := portion{whole: true, wanted: s.mentioned, rules: s.rules + c.rule}.part(s.was.structural, c.steps)
	g := s.generator(c, part)
	for _, sample := range s.samples {
		if sample["apiVersion"] != s.was.gvk.GroupVersion().String() {
			continue
		}
		object := bare(runtime.DeepCopyJSON(sample))
		if v = s.shows(c, object); v.broken() {
			return v
		}
		for _, p := range placesOf(object, c.steps) {
			if fields, ok := p.value.(map[string]any); ok && c.child != "" {
				delete(fields, c.child)
			}
		}
		if v = s.shows(c, object); v.broken() {
			return v
		}
		for i := 0; g != nil && i < graftTries && !s.ended(); i++ {
			made, err := drawn(g, source(i))
			if err != nil {
				break
			}
			if v = s.shows(c, graft(object, made, c.steps)); v.broken() {
				return v
			}
		}
	}
	return v
}

// graft returns a copy of an object with a value of another one, at the place that steps lead to. If
// the object has nothing there, it gets the nearest value around it that it lacks.
func graft(object, from map[string]any, steps []string) map[string]any {
	grafted := runtime.DeepCopyJSON(object)
	for n := len(steps); n > 0; n-- {
		at, values := placesOf(grafted, steps[:n]), placesOf(from, steps[:n])
		around := placesOf(grafted, steps[:n-1])
		if len(values) == 0 {
			continue
		}
		if len(at) > 0 {
			replace(grafted, at[0].keys, values[0].value)
			break
		}
		if len(around) > 0 {
			fields, isObject := around[0].value.(map[string]any)
			if name, isName := values[0].keys[n-1].(string); isObject && isName {
				fields[name] = values[0].value
				break
			}
		}
	}
	return grafted
}

// drawn returns an object of a generator.
func drawn(g *generate.Generator, src *draw.Source) (map[string]any, error) {
	object, err := g.Object(src)
	return bare(object), err
}

// bare takes away the metadata that rules do not see.
func bare(object map[string]any) map[string]any {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(name string, _ any) bool {
			return name != "name" && name != "generateName" && name != "namespace"
		})
	}
	return object
}

// seek starts with random objects.
func (s *search) seek(c *change) (v verdict) {
	want := portion{whole: true, rules: s.rules + c.rule}
	want.wanted = func(name string) bool { return s.mentioned(name) || strings.Contains(c.rule, "."+name) }
	g := s.generator(c, want.part(s.was.structural, c.steps))
	if g == nil {
		return v
	}
	if !c.creates {
		return s.pair(c, nil, g)
	}
	for i := 0; i < proofTries && !s.ended(); i++ {
		object, err := drawn(g, source(i))
		if err != nil {
			return v
		}
		if v = s.guided(c, object, randomTries); v.broken() {
			return v
		}
	}
	return v
}

// pair looks for two objects of which one may replace the other in the old definition, but not in
// the new one. It starts with an object, or with those of a generator.
func (s *search) pair(c *change, first map[string]any, g *generate.Generator) (v verdict) {
	var accepted []map[string]any
	consider := func(object map[string]any) bool {
		for _, other := range accepted {
			object["metadata"] = other["metadata"]
			for _, w := range []write{{object: object, stored: other}, {object: other, stored: object}} {
				if v = s.check(c, w); v.broken() {
					return true
				}
			}
		}
		accepted = append(accepted, object)
		return false
	}
	for i := 0; i < pairObjects && !s.ended() && (g != nil || i == 0); i++ {
		object := first
		if g != nil {
			object, _ = drawn(g, source(i))
		}
		object = s.repair(c, object, guidedTries/(1+i))
		if object == nil {
			continue
		}
		if consider(object) {
			return v
		}
		for _, other := range s.edits(c, object, verdict{}) {
			if len(accepted) > pairObjects || s.ended() {
				break
			}
			if _, errs := s.run(s.was, write{object: other}, nil); len(errs) == 0 && consider(other) {
				return v
			}
		}
	}
	return v
}

// source returns the random numbers for an object, by its number. Half of the objects are made of
// small numbers, which make small objects.
func source(i int) *draw.Source {
	if i%2 == 0 {
		return draw.New(1, "", i)
	}
	rng := randv2.New(randv2.NewPCG(1, uint64(i)))
	stream := make([]uint64, 64)
	for k := range stream {
		if rng.IntN(2) == 0 {
			stream[k] = rng.Uint64N(5) << 33
		}
	}
	return draw.Of(stream)
}

// generator makes objects of a part of the old schema, narrowed for a change. It is nil if
// there are none.
func (s *search) generator(c *change, part *structuralschema.Structural) *generate.Generator {
	if s.ended() || !narrow(part, c.steps, c.narrow) {
		return nil
	}
	g, err := generate.New(s.was.gvk, part, nil)
	if err != nil {
		return nil
	}
	return g
}

// shows judges an object by what shows a change, as it is or with what the change puts into it. The
// old definition refuses an object without the place of the change as far as this is concerned.
func (s *search) shows(c *change, object map[string]any) (v verdict) {
	places := placesOf(object, c.steps)
	if len(places) == 0 {
		return verdict{write: write{object: object}}
	}
	objects := []map[string]any{object}
	if c.put != nil {
		objects = nil
		for _, value := range c.put(places[0].value) {
			changed, ok := replace(runtime.DeepCopyJSON(object), places[0].keys, runtime.DeepCopyJSONValue(value)).(map[string]any)
			if ok {
				objects = append(objects, changed)
			}
		}
	}
	for i, object := range objects {
		for _, w := range s.writes(c, object) {
			got := s.check(c, w)
			if got.broken() {
				return got
			}
			if i == 0 || len(got.refused) < len(v.refused) {
				v = got
			}
		}
	}
	return v
}

// writes returns how an object reaches the server. If the status is a subresource, it is dropped when
// the object is created.
func (s *search) writes(c *change, object map[string]any) []write {
	_, hasStatus := object["status"]
	switch {
	case !hasStatus || !s.was.hasStatus() && !s.is.hasStatus() || c.created:
		return []write{{object: object}}
	case len(c.steps) > 0 && c.steps[0] == "status":
		return []write{ofStatus(object)}
	}
	return []write{{object: object}, ofStatus(object)}
}

// check judges a write by what shows a change.
func (s *search) check(c *change, w write) (v verdict) {
	s.left--
	places := placesOf(w.object, c.steps)
	if len(places) == 0 {
		return v
	}
	return s.judge(s.was, s.is, w).of(c, c.about(places))
}

// about returns the paths, with dots alone, that a change at some places is about.
func (c *change) about(places []located) (paths []string) {
	for _, p := range places {
		if c.child != "" {
			p.path = strings.TrimPrefix(p.path+"."+c.child, ".")
		}
		paths = append(paths, p.path)
	}
	return paths
}

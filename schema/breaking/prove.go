package breaking

import (
	"encoding/json"
	"maps"
	randv2 "math/rand/v2"
	"strings"
	"time"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
)

const (
	// proofTries is how many objects are judged for one change, shrinkTries how many more to
	// make a proof smaller, and pairObjects of how many objects updates are made.
	proofTries, shrinkTries, pairObjects = 200, 100, 24
	// graftTries is how many values are tried in one sample.
	graftTries = 20
	// oldTries is how many objects the old definition validates for one change.
	oldTries = 300
	// proofTime bounds the time for one change, and allTime that for all of a version, on a machine
	// that is slow or busy.
	proofTime, allTime = 10 * time.Second, time.Minute
)

// search looks for objects that show breaking changes of a version.
type search struct {
	*upgrade
	was, is        *version
	changes        []*change
	rules          string    // of the old schema
	deadline       time.Time // for all changes
	changeDeadline time.Time // for the current one
	left           int       // of oldTries
}

func newSearch(up *upgrade, was, is *version, changes []*change) *search {
	return &search{
		upgrade: up, was: was, is: is, changes: changes,
		rules: rulesOf(was.structural), deadline: time.Now().Add(allTime),
	}
}

// timeIsUp reports whether there is no more time for the current change.
func (s *search) timeIsUp() bool {
	now := time.Now()
	return s.ctx.Err() != nil || now.After(s.deadline) || now.After(s.changeDeadline)
}

// acceptedBefore reports whether the old definition accepts an object, and the search for the
// current change goes on.
func (s *search) acceptedBefore(object map[string]any) bool {
	if s.left--; s.left < 0 || s.timeIsUp() {
		return false
	}
	_, errs := s.store(s.was, object)
	return len(errs) == 0
}

// mentioned reports whether some rule of the old schema seems to be about a field of that name:
// all that begins with the name counts, too.
func (s *search) mentioned(name string) bool { return strings.Contains(s.rules, "."+name) }

// proveAll tries the cheap way for all changes first, so that a hard one takes no time
// from easy ones.
func (s *search) proveAll() {
	for _, c := range s.changes {
		s.prove(c, s.construct)
		s.prove(c, s.sampled)
	}
	for _, c := range s.changes {
		s.prove(c, s.seek)
	}
}

// prove tries a way to prove a change, while there is time.
func (s *search) prove(c *change, way func(*change) *Proof) {
	s.changeDeadline, s.left = time.Now().Add(proofTime), oldTries
	if c.Proof == nil && !c.merged && !s.timeIsUp() {
		c.Proof = way(c)
	}
}

// construct makes the least object that should show a change.
func (s *search) construct(c *change) *Proof {
	if !c.creates {
		return nil
	}
	nothing := func(string) bool { return false }
	part := portion{whole: c.child == "", wanted: nothing, rules: s.rules + c.rule}.part(s.was.structural, c.steps)
	g := s.generator(c, part, nil)
	if g == nil {
		return nil
	}
	object, err := drawn(g, draw.Replay(nil))
	if err != nil {
		return nil
	}
	return s.shows(c, object).proof()
}

// sampled looks for a sample that shows a change: as it is, without the field that the change is
// about, or with another value at the place, or around it.
func (s *search) sampled(c *change) *Proof {
	part := portion{whole: true, wanted: s.mentioned, rules: s.rules + c.rule}.part(s.was.structural, c.steps)
	g := s.generator(c, part, nil)
	for _, sample := range s.samples {
		if sample["apiVersion"] != s.was.gvk.GroupVersion().String() {
			continue
		}
		object := bare(runtime.DeepCopyJSON(sample))
		if v := s.shows(c, object); v.broken() {
			return v.proof()
		}
		for _, p := range placesOf(object, c.steps) {
			if fields, ok := p.value.(map[string]any); ok && c.child != "" {
				delete(fields, c.child)
			}
		}
		if v := s.shows(c, object); v.broken() {
			return v.proof()
		}
		for i := 0; g != nil && i < graftTries && !s.timeIsUp(); i++ {
			made, err := drawn(g, source(i))
			if err != nil {
				break
			}
			if v := s.shows(c, graft(object, made, c.steps)); v.broken() {
				return v.proof()
			}
		}
	}
	return nil
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

// seek makes objects that the old definition accepts until one shows a change, and makes
// that smaller.
func (s *search) seek(c *change) *Proof {
	want := portion{whole: true, rules: s.rules + c.rule}
	want.wanted = func(name string) bool { return s.mentioned(name) || strings.Contains(c.rule, "."+name) }
	part := want.part(s.was.structural, c.steps)
	g := s.generator(c, part, s.acceptedBefore)
	if g == nil {
		return nil
	}
	if c.updates {
		if proof := s.pair(c, g); proof != nil || !c.creates {
			return proof
		}
	}
	for i := 0; i < proofTries && !s.timeIsUp(); i++ {
		src := source(i)
		object, err := drawn(g, src)
		if err != nil {
			return nil
		}
		if v := s.shows(c, object); v.broken() {
			return s.smaller(c, g, v, src.Tree()).proof()
		}
	}
	return nil
}

// pair proves a rule about updates: it looks for two objects of which one may replace the
// other in the old definition, but not in the new one.
func (s *search) pair(c *change, g *generate.Generator) *Proof {
	var objects []map[string]any
	for i := 0; i < pairObjects && !s.timeIsUp(); i++ {
		object, err := drawn(g, source(i))
		if err != nil {
			return nil
		}
		if len(objects) > 0 {
			object["metadata"] = objects[0]["metadata"]
		}
		paths := c.about(placesOf(object, c.steps))
		for _, other := range objects {
			if v := s.judgeUpdate(s.was, s.is, object, other).of(c, paths); v.broken() {
				return v.proof()
			}
			if v := s.judgeUpdate(s.was, s.is, other, object).of(c, c.about(placesOf(other, c.steps))); v.broken() {
				return v.proof()
			}
		}
		objects = append(objects, object)
	}
	return nil
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
func (s *search) generator(c *change, part *structuralschema.Structural, valid func(map[string]any) bool) *generate.Generator {
	if !narrow(part, c.steps, c.narrow) {
		return nil
	}
	g, err := generate.New(s.was.gvk, part, valid)
	if err != nil {
		return nil
	}
	return g
}

// smaller makes the object of a verdict smaller, as long as it shows the change.
func (s *search) smaller(c *change, g *generate.Generator, v verdict, tree *draw.Tree) verdict {
	sized := func(v verdict, tree *draw.Tree) draw.Found[verdict] {
		data, _ := json.Marshal(v.object) // what was JSON is JSON
		return draw.Found[verdict]{Value: v, Size: len(data), Tree: tree}
	}
	effort := draw.Shrinker{Tries: shrinkTries, Time: min(proofTime, time.Until(s.deadline))}
	small, _ := draw.Shrink(effort, sized(v, tree), func(tree *draw.Tree) (none draw.Found[verdict], ok bool) {
		if s.timeIsUp() {
			return none, false
		}
		src := draw.Replay(tree)
		object, err := drawn(g, src)
		if err != nil {
			return none, false
		}
		v := s.shows(c, object)
		return sized(v, src.Tree()), v.broken()
	})
	return small.Value
}

// shows judges an object by what shows a change, as it is or with what the change puts into it.
func (s *search) shows(c *change, object map[string]any) (v verdict) {
	places := placesOf(object, c.steps)
	if len(places) == 0 {
		return v
	}
	paths := c.about(places)
	if c.put == nil {
		return s.judge(s.was, s.is, object).of(c, paths)
	}
	for _, value := range c.put(places[0].value) {
		changed, ok := replace(runtime.DeepCopyJSON(object), places[0].keys, runtime.DeepCopyJSONValue(value)).(map[string]any)
		if !ok {
			continue
		}
		if v = s.judge(s.was, s.is, changed).of(c, paths); v.broken() {
			break
		}
	}
	return v
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

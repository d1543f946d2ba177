package breaking

import (
	"encoding/json"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"time"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
)

const (
	// proofTries bounds how many objects are judged for one change, shrinkTries how many
	// to make a proof smaller, and pairObjects of how many objects updates are made.
	proofTries, shrinkTries, pairObjects = 200, 100, 24
	// proofTime bounds the time for one change, and allTime that for all of a version.
	proofTime, allTime = 2 * time.Second, 15 * time.Second
)

// search looks for objects that show breaking changes of a version.
type search struct {
	*upgrade
	was, is *version
	changes []*change
	rules   *ruleText // of the old schema
	until   time.Time // for all changes
	enough  time.Time // for the one at hand
}

func newSearch(up *upgrade, was, is *version, changes []*change) *search {
	return &search{
		upgrade: up, was: was, is: is, changes: changes,
		rules: rulesOf(was.structural), until: time.Now().Add(allTime),
	}
}

// over says that there is no more time for the change at hand.
func (s *search) over() bool {
	now := time.Now()
	return s.ctx.Err() != nil || now.After(s.until) || now.After(s.enough)
}

// proveAll tries the cheap way for all changes first, so that a hard one takes no time
// from easy ones.
func (s *search) proveAll() {
	for some := range slices.Chunk(s.changes, group) {
		s.enough = s.until
		if s.over() {
			return
		}
		in := s.narrower(some)
		for _, c := range some {
			in.prove(c, in.construct)
		}
	}
	for _, c := range s.changes {
		s.prove(c, s.seek)
	}
}

// prove tries a way to prove a change, while there is time.
func (s *search) prove(c *change, way func(*change) *Proof) {
	s.enough = time.Now().Add(proofTime)
	if c.Proof == nil && !c.merged && !s.over() {
		c.Proof = way(c)
	}
}

// construct makes the least object that should show a change, and mends it if a rule of the
// old definition refuses it.
func (s *search) construct(c *change) *Proof {
	if !c.creates {
		return nil
	}
	nothing := func(string) bool { return false }
	part := portion{whole: c.child == "", wanted: nothing}.part(s.was.structural, c.steps)
	g := s.generator(c, part, nil)
	if g == nil {
		return nil
	}
	object, err := g.Object(draw.Replay(nil))
	if err != nil {
		return nil
	}
	if v, ok := s.shows(c, object); ok {
		return v.proof()
	}
	if s.rules.none() {
		return nil
	}
	if object = s.mend(object, c.steps); object == nil {
		return nil
	}
	v, _ := s.shows(c, object)
	return v.proof()
}

// seek makes objects that the old definition accepts until one shows a change, and makes
// that smaller.
func (s *search) seek(c *change) *Proof {
	part := portion{whole: true, wanted: s.rules.mention}.part(s.was.structural, c.steps)
	g := s.generator(c, part, func(object map[string]any) bool {
		if s.over() {
			return false
		}
		_, errs := s.store(s.was, object)
		return len(errs) == 0
	})
	if g == nil {
		return nil
	}
	if c.updates {
		if proof := s.pair(c, g); proof != nil || !c.creates {
			return proof
		}
	}
	for i := 0; i < proofTries && !s.over(); i++ {
		src := draws(i)
		object, err := g.Object(src)
		if err != nil {
			return nil
		}
		if v, ok := s.shows(c, object); ok {
			return s.smaller(g, v, src.Tree(), func(object map[string]any) (verdict, bool) { return s.shows(c, object) }).proof()
		}
	}
	return nil
}

// pair proves a rule about updates: it looks for two objects of which one may replace the
// other in the old definition, but not in the new one.
func (s *search) pair(c *change, g *generate.Generator) *Proof {
	var objects []map[string]any
	for i := 0; i < pairObjects && !s.over(); i++ {
		object, err := g.Object(draws(i))
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

// generator makes objects of a part of the old schema, narrowed for a change. It is nil if
// there are none.
func (s *search) generator(c *change, part *structuralschema.Structural, valid func(map[string]any) bool) *generate.Generator {
	if !narrow(part, c.steps, c.narrow) {
		return nil
	}
	g, err := generate.New(s.was.gvk(), part, valid)
	if err != nil {
		return nil
	}
	return g
}

// draws returns a source for the object of that number. The first is made of zeros, then
// every other one is made of small draws, which make small objects.
func draws(i int) *draw.Source {
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

// smaller makes an object smaller of which try holds.
func (s *search) smaller(g *generate.Generator, v verdict, tree *draw.Tree, try func(object map[string]any) (verdict, bool)) verdict {
	sized := func(v verdict, tree *draw.Tree) draw.Found[verdict] {
		data, err := json.Marshal(v.object)
		if err != nil {
			return draw.Found[verdict]{Value: v, Size: 1 << 30, Tree: tree}
		}
		return draw.Found[verdict]{Value: v, Size: len(data), Tree: tree}
	}
	effort := draw.Shrinker{Tries: shrinkTries, Time: min(proofTime, time.Until(s.until))}
	small, _ := draw.Shrink(effort, sized(v, tree), func(tree *draw.Tree) (none draw.Found[verdict], ok bool) {
		if s.over() {
			return none, false
		}
		src := draw.Replay(tree)
		object, err := g.Object(src)
		if err != nil {
			return none, false
		}
		v, ok := try(object)
		return sized(v, src.Tree()), ok
	})
	return small.Value
}

// shows says whether an object shows a change, as it is or with what the change puts into
// it.
func (s *search) shows(c *change, object map[string]any) (verdict, bool) {
	places := placesOf(object, c.steps)
	if len(places) == 0 {
		return verdict{}, false
	}
	paths := c.about(places)
	if c.put == nil {
		v := s.judge(s.was, s.is, object).of(c, paths)
		return v, v.broken()
	}
	for _, value := range c.put(places[0].value) {
		if s.over() {
			break
		}
		changed, ok := replace(runtime.DeepCopyJSON(object), places[0].keys, runtime.DeepCopyJSONValue(value)).(map[string]any)
		if !ok {
			continue
		}
		if v := s.judge(s.was, s.is, changed).of(c, paths); v.broken() {
			return v, true
		}
	}
	return verdict{}, false
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

// least returns a small object of a version, and nil if none is found.
func (up *upgrade) least(v *version) json.RawMessage {
	if v.structural == nil {
		return nil
	}
	part := portion{wanted: rulesOf(v.structural).mention}.part(v.structural, nil)
	until := time.Now().Add(proofTime)
	g, err := generate.New(v.gvk(), part, func(object map[string]any) bool {
		if up.ctx.Err() != nil || time.Now().After(until) {
			return false
		}
		_, errs := up.store(v, object)
		return len(errs) == 0
	})
	if err != nil {
		return nil
	}
	object, err := g.Object(draw.Replay(nil))
	if err != nil {
		return nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return data
}

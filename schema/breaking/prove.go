package breaking

import (
	"encoding/json"
	"maps"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/shrink"
)

// A search is bounded by the number of objects, not by time: it finds the same on each machine. Each
// thousand bytes of an object count as another one.
const (
	// guidedTries is how many objects are judged from the least object on, certainTries if a proof does not
	// matter or is not likely, and sampleTries from a sample on.
	guidedTries, certainTries, sampleTries = 600, 60, 30
	// pairObjects is of how many objects updates are made.
	pairObjects = 40
	// shrinkTries is how many objects are judged to make a proof smaller.
	shrinkTries = 400
)

// search looks for objects that show breaking changes of a version.
type search struct {
	*upgrade
	was, is *version
	made    map[string]any // the least values, by their paths
	left    int            // objects that may still be judged in a way to a proof
}

// prove looks for a proof of a change: by updates, from the least object that should show it, and from samples.
func (s *search) prove(c *change) {
	var v verdict
	least := s.least(c)
	if c.updates {
		v = s.pair(c, least)
	}
	if c.creates && !v.broken() {
		tries := guidedTries
		if c.certain || c.harmless {
			tries = certainTries
		}
		v = s.guided(c, least, tries)
	}
	if c.creates && !v.broken() {
		v = s.sampled(c, least)
	}
	if v.broken() {
		v = s.smaller(c, v)
		c.Proof = v.proof()
		c.Proof.Blocked = len(v.errs) > 0 && len(s.is.ValidateUpdate(s.ctx, s.is.decode(v.kept), s.is.decode(v.kept))) > 0
	}
}

// sampled starts with samples: as they are, without the field that the change is about, or with
// another value at the place, or around it.
func (s *search) sampled(c *change, least map[string]any) (v verdict) {
	for _, sample := range s.samples {
		if sample["apiVersion"] != s.was.gvk.GroupVersion().String() || sample["kind"] != s.was.gvk.Kind {
			continue
		}
		object := bare(runtime.DeepCopyJSON(sample))
		without := runtime.DeepCopyJSON(object)
		for _, p := range placesOf(without, c.steps) {
			if fields, ok := p.value.(map[string]any); ok && c.child != "" {
				delete(fields, c.child)
			}
		}
		for _, start := range []map[string]any{object, without, graft(object, least, c.steps)} {
			if v = s.guided(c, start, sampleTries); v.broken() {
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
			shrink.Replace(grafted, at[0].keys, values[0].value)
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

// bare takes away the metadata that rules do not see.
func bare(object map[string]any) map[string]any {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(name string, _ any) bool {
			return name != "name" && name != "generateName" && name != "namespace"
		})
	}
	return object
}

// pair looks for two objects of which one may replace the other in the old definition, but not in
// the new one: an object, and changed copies of it.
func (s *search) pair(c *change, object map[string]any) (v verdict) {
	if object = s.repair(c, object); object == nil {
		return v
	}
	accepted := []map[string]any{object}
	for i := 0; i < len(accepted); i++ {
		for _, next := range s.edits(c, accepted[i], verdict{}) {
			if len(accepted) == pairObjects || s.ended() {
				return v
			}
			if _, errs := s.run(s.was, write{object: next}, nil); len(errs) > 0 {
				continue
			}
			for _, other := range accepted {
				for _, w := range []write{{object: next, stored: other}, {object: other, stored: next}} {
					if v = s.check(c, w); v.broken() {
						return v
					}
				}
			}
			accepted = append(accepted, next)
		}
	}
	return v
}

// least returns the smallest object of the old schema that contains what a change is about, preferably one that
// shows the change. It returns nil if it cannot make either.
func (s *search) least(c *change) map[string]any {
	for _, change := range []func(*structuralschema.Structural){c.narrow, nil} {
		narrowed := s.was.structural.DeepCopy()
		if s.ended() || !narrow(narrowed, c.steps, change) {
			break
		}
		object := leastObject(s.was.gvk, narrowed)
		if object == nil {
			continue
		}
		if c.Path == "metadata.generateName" { // it is only there if a client wants a name
			prefix := s.was.structural.Properties["metadata"].Properties["generateName"]
			prefix.ValueValidation = prefix.ValueValidation.DeepCopy()
			if c.narrow != nil {
				c.narrow(&prefix)
			}
			object["metadata"].(map[string]any)["generateName"] = leastOf(&prefix)
		}
		return bare(object)
	}
	return nil
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
			changed, ok := shrink.Replace(runtime.DeepCopyJSON(object), places[0].keys, runtime.DeepCopyJSONValue(value)).(map[string]any)
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
	s.left -= 1 + sizeOf(w)/1000
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

// smaller takes away from a proof what it does not need, while it shows the change.
func (s *search) smaller(c *change, v verdict) verdict {
	s.left = shrinkTries
	over := func() bool { return s.left <= 0 || s.ended() }
	shrink.Objects([]map[string]any{v.object, v.stored}, over, func(objects []map[string]any) bool {
		w := write{object: objects[0], stored: objects[1]}
		if v.status {
			w = ofStatus(objects[0])
		}
		if sizeOf(w) >= sizeOf(v.write) {
			return false
		}
		got := s.check(c, w)
		if !got.broken() || len(got.others) > len(v.others) {
			return false
		}
		v = got
		return true
	})
	return v
}

func sizeOf(w write) int {
	object, _ := json.Marshal(w.object) // what was JSON is JSON
	stored, _ := json.Marshal(w.stored)
	return len(object) + len(stored)
}

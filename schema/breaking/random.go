package breaking

import (
	"strconv"
	"strings"
	"time"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
)

const (
	// randomObjects is how many random objects are judged, randomTime bounds the time for that,
	// and randomChanges is how many changes they may find.
	randomObjects, randomTime, randomChanges = 100, 5 * time.Second, 20
)

// tryRandomObjects judges random objects of the old schema, and adds a change for each difference
// that no known change explains.
func (s *search) tryRandomObjects() {
	s.deadline = time.Now().Add(randomTime)
	s.changeDeadline = s.deadline
	if s.timeIsUp() {
		return
	}
	g, err := generate.New(s.was.gvk(), s.was.structural, s.acceptedBefore)
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for i := 0; i < randomObjects && len(seen) < randomChanges && !s.timeIsUp(); i++ {
		src := draw.New(1, s.was.name, i)
		object, err := g.Object(src)
		if err != nil {
			return
		}
		v := s.judge(s.was, s.is, object)
		found := s.unexplained(v)
		if found == nil || seen[found.Path] {
			continue
		}
		seen[found.Path] = true
		found.Proof = s.smaller(g, v, src.Tree(), func(object map[string]any) (verdict, bool) {
			v := s.judge(s.was, s.is, object)
			again := s.unexplained(v)
			return v, again != nil && again.Path == found.Path
		}).proof()
		s.changes = append(s.changes, found)
	}
}

// unexplained returns a change for something that is broken in an object, and that none of
// the known changes is about, or nil.
func (s *search) unexplained(v verdict) *change {
	if !v.broken() {
		return nil
	}
	known := map[string]evidence{}
	for _, c := range s.changes {
		for _, path := range c.about(placesOf(v.object, c.steps)) {
			known[path] |= c.shown
		}
	}
	explained := func(path string, by evidence) bool {
		for known[path]&by == 0 {
			if path == "" {
				return false
			}
			path = path[:max(0, strings.LastIndexByte(path, '.'))]
		}
		return true
	}
	for _, err := range v.errs {
		if path := errorPath(err); !strings.HasPrefix(err.Detail, rulesNotChecked) && !explained(path, byError) {
			return s.newChange(path, v.object, "values that were accepted are refused")
		}
	}
	for _, a := range v.altered {
		if path := dotted(a.path); !explained(path, byData) {
			return s.newChange(path, v.object, "values are stored otherwise than before")
		}
	}
	return nil
}

func (s *search) newChange(path string, object map[string]any, what string) *change {
	steps := s.stepsOf(path, object)
	return &change{
		Change: Change{Path: pathOf(steps), What: what, Why: "a random object shows it"},
		steps:  steps,
		shown:  byError | byData,
	}
}

// stepsOf returns the steps of a path with dots alone in an object. A key of a map may have
// dots too. It is a name if one of the schemas declares it, else it is any key.
func (s *search) stepsOf(path string, object map[string]any) (steps []string) {
	was, is := s.was.structural, s.is.structural
	var value any = object
	for path != "" {
		name, rest, _ := strings.Cut(path, ".")
		switch v := value.(type) {
		case []any:
			steps = append(steps, anyItem)
			was, is, value = itemsOf(was), itemsOf(is), nil
			if i, err := strconv.Atoi(name); err == nil && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			for key := range v {
				if len(key) > len(name) && under(path, key) {
					name, rest = key, strings.TrimPrefix(path[len(key):], ".")
				}
			}
			if declares(was, name) || declares(is, name) {
				steps = append(steps, name)
			} else {
				steps = append(steps, anyValue)
			}
			was, is, value = propertyOf(was, name), propertyOf(is, name), v[name]
		default:
			return append(steps, strings.Split(path, ".")...)
		}
		path = rest
	}
	return steps
}

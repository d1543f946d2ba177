package roundtrip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/choices"
)

// sample is an object that a law is checked with: its JSON, or its Go value for laws about values.
type sample struct {
	json   []byte
	value  runtime.Object
	from   string          // the release under which it was stored; see [Total]
	source *choices.Source // the draws that it is made of
	past   *past           // see [Edited]; nil for others
}

// text is what a reader sees of it, and what its size is measured by.
func (m sample) text() (text []byte) {
	if m.value == nil {
		return m.json
	}
	defer func() {
		if recover() != nil {
			text = fmt.Appendf(nil, "%+v", m.value)
		}
	}()
	text, err := json.Marshal(m.value.DeepCopyObject()) // which may change it
	if err != nil {
		return fmt.Appendf(nil, "%+v", m.value)
	}
	return text
}

// nth makes sample number i.
func (s *subject) nth(ctx context.Context, i int) (sample, error) {
	return s.sample(ctx, choices.New(s.cfg.seed, s.String(), i))
}

// broken returns how a sample breaks the law, or nil.
func (s *subject) broken(ctx context.Context, m sample) (f *failure) {
	if s.checkValue == nil {
		f = s.check(ctx, s, m.json)
		if f == nil && m.past != nil {
			f = s.checkUnaffected(ctx, m.past, m.json)
		}
		return f
	}
	defer func() {
		if v := recover(); v != nil {
			klog.FromContext(ctx).Error(nil, "panic", "stack", string(debug.Stack())) // for stackOf
			f = &failure{err: fmt.Errorf("panic: %v", v)}
		}
	}()
	return s.checkValue(s, m.value)
}

// counterexample is a sample for which a law does not hold.
type counterexample struct {
	*failure
	subject   *subject
	sample    sample
	object    []byte // the text of the object
	iteration int    // the iteration of the first counterexample
	tried     int    // the number of smaller samples that were tried
	stack     string // of the panic, if there was one
	reported  string // the test that has the report of the same cause, or ""
}

const (
	// shrinkTries is how many samples are tried to find a smaller counterexample.
	shrinkTries = 3000
	// fewest is the least part of the samples that must have been made for a meaningful check.
	fewest = 10
)

// search returns a small counterexample, or nil if no sample fails, or an error if no samples can
// be made. A counterexample of a reported cause is returned only if there is no other, and is not
// made smaller.
func (s *subject) search(ctx context.Context, b budget) (again *counterexample, err error) {
	quiet := silent(ctx)
	_, notMade := s.nth(quiet, 0) // also makes the generators, which may take long
	began := time.Now()
	for s.tried, s.checked = 0, 0; b.open(s.tried, began); s.tried++ {
		m, err := s.nth(quiet, s.tried)
		if errors.Is(err, errNotMade) {
			notMade = err
			continue
		}
		if err != nil {
			return nil, err
		}
		s.checked++
		if s.coverage != nil {
			s.coverage.add(m.json)
		}
		f := s.broken(quiet, m)
		if f == nil {
			continue
		}
		c := counterexample{failure: f, subject: s, sample: m, object: m.text(), iteration: s.tried, reported: s.reported.known(s, f)}
		if c.reported == "" {
			return s.shrink(ctx, b.shrinker(), c), nil
		}
		again = &c
	}
	if s.checked*fewest < s.tried {
		return nil, fmt.Errorf("only %d of %d objects could be made: %w", s.checked, s.tried, notMade)
	}
	return again, nil
}

// silent returns a context that logs nothing, for faults that a test causes on purpose.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}

// shrink returns the smallest counterexample that breaks the law in the same way as the
// first: by an error, or by a difference, and not by reported causes alone.
func (s *subject) shrink(ctx context.Context, effort choices.Shrinker, first counterexample) *counterexample {
	quiet := silent(ctx)
	passed := map[string]bool{} // because many draws make the same object
	found := func(c counterexample) choices.Found[counterexample] {
		return choices.Found[counterexample]{Value: c, Size: len(c.object), Tree: c.sample.source.Tree()}
	}
	try := func(tree *choices.Tree) (none choices.Found[counterexample], ok bool) {
		m, err := s.sample(quiet, choices.Replay(tree))
		if err != nil {
			return none, false
		}
		text := m.text()
		if passed[string(text)] {
			return none, false
		}
		f := s.broken(quiet, m)
		for n := 0; f == nil && s.law == Determinism && n < 3; n++ { // the results may be the same by chance
			f = s.broken(quiet, m)
		}
		if f == nil || (f.err == nil) != (first.err == nil) || s.reported.known(s, f) != "" {
			passed[string(text)] = true
			return none, false
		}
		c := first
		c.failure, c.sample, c.object = f, m, text
		return found(c), true
	}
	small, tried := choices.Shrink(effort, found(first), try)
	c := small.Value
	c.tried = tried
	if c.err != nil {
		c.stack = stackOf(ctx, func(ctx context.Context) { s.broken(ctx, c.sample) })
	}
	return &c
}

package roundtrip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"sync"
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
	p := s.pool
	if p == nil {
		return s.sample(ctx, choices.New(s.cfg.seed, s.String(), i))
	}
	if i < len(p.samples) {
		return p.samples[i], nil
	}
	m, err := s.sample(ctx, choices.New(s.cfg.seed, p.name, i))
	if err == nil && i == len(p.samples) && i < pooled {
		p.samples = append(p.samples, m)
	}
	return m, err
}

// pool keeps samples for several laws, none of which changes them, because making a sample takes as
// long as checking a law.
type pool struct {
	name    string // the name of the draws
	samples []sample
}

// pooled is how many samples are kept at most.
const pooled = 250

// broken returns how a sample breaks the law, or nil.
func (s *subject) broken(ctx context.Context, m sample) (f *failure) {
	if s.checkValue == nil {
		f = s.check(ctx, s, m.json)
		if f == nil && m.past != nil {
			f = s.checkUnaffected(ctx, m.past, m.json)
		}
		return f
	}
	if s.cfg.trace != "" {
		s.cfg.note(m.text(), "%s", s)
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
func (s *subject) search(ctx context.Context, b budget) (*counterexample, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	run := &searchRun{subject: s, budget: b, began: time.Now()}
	// One goroutine traces conversions; [Determinism] checks that they are safe for concurrent use.
	workers := 1
	if s.checkValue != nil && s.cfg.trace == "" {
		workers = goruntime.GOMAXPROCS(0)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { run.work(silent(ctx)) })
	}
	all.Wait()
	s.tried, s.checked = run.next, run.made
	switch {
	case run.found != nil:
		if s.pool != nil {
			s.pool.samples = nil // because the fault may have changed them
		}
		return s.shrink(ctx, b.shrinker(), b.progress, *run.found), nil
	case run.fatal != nil:
		return nil, run.fatal
	case run.made*fewest < run.next:
		return nil, fmt.Errorf("only %d of %d objects could be made: %w", run.made, run.next, run.notMade)
	}
	return run.again, nil
}

// searchRun is what the goroutines of a search share.
type searchRun struct {
	*subject
	budget
	began time.Time

	mu             sync.Mutex // guards the following fields
	found, again   *counterexample
	fatal, notMade error
	next, made     int // numbers of samples
}

// work checks samples until one fails, or the budget is used up.
func (r *searchRun) work(ctx context.Context) {
	for i, m, ok := r.take(ctx); ok; i, m, ok = r.take(ctx) {
		if f := r.broken(ctx, m); f != nil {
			r.add(&counterexample{failure: f, subject: r.subject, sample: m, object: m.text(), iteration: i, reported: r.reported.known(r.subject, f)})
		}
	}
}

// take makes the next sample, one after another, because a function of [Funcs] need not be safe for
// concurrent use. It returns false if no sample remains to be checked.
func (r *searchRun) take(ctx context.Context) (i int, m sample, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.fatal == nil && r.found == nil && r.open(r.next, r.began) {
		r.progress.log("%s: object %d of at least %d", r.subject, r.next+1, r.least)
		m, err := r.nth(ctx, r.next)
		r.next++
		switch {
		case err == nil:
			r.made++
			r.coverage.add(m.json)
			return r.next - 1, m, true
		case errors.Is(err, errNotMade):
			r.notMade = err
		default:
			r.fatal = err
		}
	}
	return 0, sample{}, false
}

// add keeps the first counterexample, and any of a reported cause.
func (r *searchRun) add(c *counterexample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.reported != "" {
		r.again = c
	} else if r.found == nil || c.iteration < r.found.iteration {
		r.found = c
	}
}

// silent returns a context that logs nothing, for faults that a test causes on purpose.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}

// shrink returns the smallest counterexample that breaks the law in the same way as the
// first: by an error, or by a difference, and not by reported causes alone.
func (s *subject) shrink(ctx context.Context, effort choices.Shrinker, p *progress, first counterexample) *counterexample {
	quiet := silent(ctx)
	passed := map[string]bool{} // because many draws make the same object
	found := func(c counterexample) choices.Found[counterexample] {
		return choices.Found[counterexample]{Value: c, Size: len(c.object), Tree: c.sample.source.Tree()}
	}
	begin, smallest := time.Now(), len(first.object)
	try := func(tree *choices.Tree) (none choices.Found[counterexample], ok bool) {
		p.log("%s does not hold for an object of %d bytes: looking for a smaller one, %d bytes after %v", s, len(first.object), smallest, time.Since(begin).Round(time.Second))
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
		smallest = min(smallest, len(text))
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

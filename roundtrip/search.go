package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/draw"
)

// counterexample is an object for which a law does not hold.
type counterexample struct {
	*failure
	subject   *subject
	object    []byte // its text
	made      made
	iteration int // of the first one
	seed      uint64
	tried     int    // smaller ones
	stack     string // of the panic, if it is one
}

// search returns a small counterexample; nil if all objects are as they should be. It is
// an error if no objects can be made.
func (s *subject) search(ctx context.Context, b budget) (*counterexample, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	h := hunt{subject: s, ctx: silent(ctx), budget: b, begin: time.Now()}
	var all sync.WaitGroup
	for range s.workers() {
		all.Go(h.work)
	}
	all.Wait()
	if h.found != nil && s.pool != nil {
		s.pool.sources, s.pool.objects = nil, nil // what is wrong may have changed them
	}
	switch {
	case h.found != nil:
		c := s.shrink(ctx, shrinkTries, h.found.source.Tree(), h.found.object, h.found.broken)
		c.iteration = h.found.iteration
		return c, nil
	case h.err != nil:
		return nil, h.err
	case h.made*fewest < h.next:
		return nil, fmt.Errorf("only %d of %d objects could be made: %w", h.made, h.next, h.notMade)
	}
	return nil, nil
}

// shrinkTries is how many objects are tried to find a smaller counterexample.
const shrinkTries = 3000

// fewest is which part of the objects must have been made at least, or there is no telling
// what was checked.
const fewest = 10

// workers is how many goroutines check objects. Conversions are watched by one; that they
// bear more is for [Determinism].
func (s *subject) workers() int {
	if s.checkValue == nil {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// hunt is a search under way. Objects are made one after another, because a function of
// [Funcs] need not bear anything else, and are checked at the same time.
type hunt struct {
	subject *subject
	ctx     context.Context
	budget  budget
	begin   time.Time

	lock    sync.Mutex // of what follows
	next    int        // object
	made    int        // so many of them
	notMade error
	err     error // that ends it
	found   *find // the first
}

// find is an object that breaks the law, as it was found.
type find struct {
	iteration int
	source    *draw.Source
	object    made
	broken    *failure
}

func (h *hunt) work() {
	for {
		f := h.object()
		if f == nil {
			return
		}
		if f.broken = h.subject.broken(h.ctx, f.object); f.broken == nil {
			continue
		}
		h.lock.Lock()
		if h.found == nil || f.iteration < h.found.iteration {
			h.found = f
		}
		h.lock.Unlock()
	}
}

// object makes the next object; nil if there is none to check.
func (h *hunt) object() *find {
	h.lock.Lock()
	defer h.lock.Unlock()
	for h.err == nil && h.found == nil && h.next < h.budget.most && (h.next < h.budget.least || time.Since(h.begin) < h.budget.time) {
		f := &find{iteration: h.next}
		h.next++
		var err error
		f.source, f.object, err = h.subject.nth(h.ctx, f.iteration)
		switch {
		case err == nil:
			h.made++
			return f
		case errors.Is(err, errNotMade):
			h.notMade = err
		default:
			h.err = err
		}
	}
	return nil
}

// silent returns a context that logs nothing: what a test does to an object on purpose is
// no news.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}

// shrink returns the smallest counterexample that breaks the law in the same way as one
// that was found: by an error, or by a difference.
func (s *subject) shrink(ctx context.Context, tries int, tree *draw.Tree, object made, broken *failure) *counterexample {
	quiet := silent(ctx)
	passed := map[string]bool{} // the same object is made of many draws
	found := func(tree *draw.Tree, object made, text []byte, f *failure) draw.Found[*counterexample] {
		return draw.Found[*counterexample]{Value: &counterexample{failure: f, subject: s, object: text, made: object}, Size: len(text), Tree: tree}
	}
	small, tried := draw.Shrink(draw.Shrinker{Tries: tries}, found(tree, object, object.text(), broken), func(tree *draw.Tree) (none draw.Found[*counterexample], ok bool) {
		src := draw.Replay(tree)
		object, err := s.make(quiet, src)
		if err != nil {
			return none, false
		}
		text := object.text()
		if passed[string(text)] {
			return none, false
		}
		f := s.broken(quiet, object)
		if f == nil || (f.err == nil) != (broken.err == nil) {
			passed[string(text)] = true
			return none, false
		}
		return found(src.Tree(), object, text, f), true
	})
	c := small.Value
	c.seed, c.tried = s.cfg.seed, tried
	if c.err != nil {
		c.stack = stackOf(ctx, func(ctx context.Context) { s.broken(ctx, c.made) })
	}
	return c
}

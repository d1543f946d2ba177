package migrate

import (
	"errors"
	"strings"
	"sync"
	"time"
)

// Progress is the progress of [Run] or [Remove]. All counts are numbers of objects.
type Progress struct {
	// Total is the number of objects, as the API server estimates it.
	Total int64
	// Rewritten is the number of objects that were written. With [DryRun], it is the number
	// of objects that could be written.
	Rewritten int64
	// Current is the number of objects that were in the storage version already, including objects
	// that an earlier run or clients wrote since the migration began.
	Current int64
	// Gone is the number of objects that were deleted during the run.
	Gone int64
	// Failed is the number of objects that could not be rewritten.
	Failed int64
	// Waiting is how long Run waits before it starts: see [PropagationDelay]. It is zero
	// afterwards.
	Waiting time.Duration
}

// Done returns the number of objects that Run has handled, with any outcome.
func (p Progress) Done() int64 { return p.Rewritten + p.Current + p.Gone + p.Failed }

// Problem is an object that could not be rewritten.
type Problem struct {
	Namespace, Name string // Namespace is "" if the resource has none
	Err             error
}

// Error returns the namespace and name of the object, and the error.
func (p Problem) Error() string {
	return objectName(p.Namespace, p.Name) + ": " + p.Err.Error()
}

func objectName(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// Unwrap returns Err.
func (p Problem) Unwrap() error { return p.Err }

const (
	maxProblems = 100 // that are kept
	// maxInARow failures of the API server or of a webhook in a row, unlike refusals, will hit the
	// other objects too.
	maxInARow = 100
)

// tally counts into a report.
type tally struct {
	mu      sync.Mutex
	report  *Report
	inARow  int
	observe func(Progress)
	told    time.Time
}

// outcome is the result for an object.
type outcome int

const (
	rewritten outcome = iota
	current
	gone
	failed
)

// count counts an object. It returns an error if the run must end.
func (t *tally) count(o outcome, p Problem) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.tell(interval)
	r := t.report
	switch o {
	case rewritten:
		r.Rewritten++
	case current:
		r.Current++
	case gone:
		r.Gone++
	case failed:
		r.Failed++
		if len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, p)
		}
	}
	r.Total = max(r.Total, r.Done())
	if o != failed || !transient(p.Err) {
		t.inARow = 0
		return nil
	}
	if t.inARow++; t.inARow >= maxInARow {
		return errors.Join(errTooMany, p)
	}
	return nil
}

// expect stores the API server's estimate of the number of objects after a page.
func (t *tally) expect(n int64, remaining *int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.tell(interval)
	t.report.Total = n
	if remaining != nil {
		t.report.Total += *remaining
	}
}

// interval is the least time between two calls of observe, except for the last.
const interval = time.Second / 10

// end calls observe for the last time.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(0)
}

// tell calls observe, unless it was called just before. The caller holds the lock.
func (t *tally) tell(interval time.Duration) {
	if time.Since(t.told) >= interval {
		t.observe(t.report.Progress)
		t.told = time.Now()
	}
}

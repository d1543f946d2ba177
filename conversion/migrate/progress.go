package migrate

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Progress is how far Run is. The counts are of objects.
type Progress struct {
	// Total is how many there are, as the API server estimates.
	Total int64
	// Rewritten are those that Run has written; with [DryRun], that it could write.
	Rewritten int64
	// Current are those that were in the storage version already, such as those that were
	// written since the migration began, by an earlier Run too.
	Current int64
	// Gone are those that were deleted meanwhile.
	Gone int64
	// Failed are those that could not be rewritten.
	Failed int64
	// Waiting is how long Run waits before it begins: see [PropagationDelay]. It is zero when it works.
	Waiting time.Duration
}

// Done is how many objects Run is done with, whatever the outcome.
func (p Progress) Done() int64 { return p.Rewritten + p.Current + p.Gone + p.Failed }

// Problem is an object that could not be rewritten.
type Problem struct {
	Namespace, Name string // Namespace is "" if the resource has none
	Err             error
}

// Error names the object.
func (p Problem) Error() string {
	return objectName(p.Namespace, p.Name) + ": " + p.Err.Error()
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Unwrap returns Err.
func (p Problem) Unwrap() error { return p.Err }

// faults returns the problems as errors.
func (r *Report) faults() []error {
	var faults []error
	for _, p := range r.Problems {
		faults = append(faults, p)
	}
	if more := r.Failed - int64(len(r.Problems)); more > 0 {
		faults = append(faults, fmt.Errorf("and %d more", more))
	}
	return faults
}

const (
	maxProblems = 100 // that are kept
	// So many failures of the API server or of a webhook in a row, unlike refusals, will hit
	// the others too.
	maxInARow = 100
)

// tally counts into a report.
type tally struct {
	mu      sync.Mutex
	report  *Report
	inARow  int
	observe func(Progress) // or nil
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

// count counts an object. An error means that it makes no sense to go on.
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

// expect takes the API server's estimate of what comes after the objects of a page.
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

// end tells how far it is at the end.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(0)
}

// tell tells how far it is, unless that was done just now. The caller holds the lock.
func (t *tally) tell(interval time.Duration) {
	if t.observe != nil && time.Since(t.told) >= interval {
		t.observe(t.report.Progress)
		t.told = time.Now()
	}
}

package roundtrip

import (
	"testing"
	"time"

	"github.com/crdkit/crdkit/internal/choices"
)

const (
	// usualTime and longestTime are for all laws and paths of a kind: the time that they share
	// beyond the least number of objects, and the time after which they stop.
	usualTime, longestTime = 1500 * time.Millisecond, 30 * time.Second
	// reportTime is for the smallest object of one failure, if the timeout of go test leaves so much.
	reportTime = 10 * time.Second
)

// budget limits how many objects are checked for one subject: most is the maximum, and least is
// the minimum even if the time is over.
type budget struct {
	most, least int
	time        time.Duration
	// stop is the time after which no further object is checked, and deadline the time at which go
	// test ends the process. Both may be zero.
	stop, deadline time.Time
}

func (c *config) budget(subjects int) budget {
	const least = 100
	if c.iterations > 0 {
		return budget{most: c.iterations, least: c.iterations}
	}
	subjects = max(subjects, 1)
	return budget{most: max(10000/subjects, least), least: least, time: usualTime / time.Duration(subjects)}
}

// of returns the budget for a law. The law about edits gets more objects, because most edits are
// where a conversion has nothing to keep.
func (b budget) of(law Law) budget {
	if law == Edited && b.most > b.least {
		b.most, b.time = 4*b.most, 4*b.time
	}
	return b
}

// until returns the budget of the first of the remaining subjects of a kind, so that a part of the
// time of go test is left for reports.
func (b budget) until(t *testing.T, c *config, began time.Time, remaining int) budget {
	if c.iterations == 0 {
		left := max(0, time.Until(began.Add(longestTime)))
		b.stop = time.Now().Add(min(left, 2*left/time.Duration(remaining))) // most laws take less than the slowest
	}
	if deadline, ok := t.Deadline(); ok {
		b.deadline = deadline
		if stop := deadline.Add(-min(3*reportTime, deadline.Sub(c.began)/5)); b.stop.IsZero() || stop.Before(b.stop) {
			b.stop = stop
		}
	}
	return b
}

// open reports whether one more object is checked.
func (b budget) open(checked int, began time.Time) bool {
	if !b.stop.IsZero() && time.Now().After(b.stop) {
		return false
	}
	return checked < b.most && (checked < b.least || time.Since(began) < b.time)
}

// shrinker returns the effort to find a smaller counterexample.
func (b budget) shrinker() choices.Shrinker {
	effort := choices.Shrinker{Tries: shrinkTries, Time: reportTime}
	if !b.deadline.IsZero() {
		effort.Time = min(effort.Time, max(time.Until(b.deadline)/3, time.Millisecond))
	}
	return effort
}

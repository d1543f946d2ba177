// Package logthrottle decides which problems are logged, of those that come again and again.
package logthrottle

import "time"

// Interval is the least time between two problems that are logged.
const Interval = time.Minute

// Throttle logs a problem once, until there is another, and no more than one an [Interval]. Some
// problems differ a bit each time, such as by the port of a connection. It is not safe for
// concurrent use.
type Throttle struct {
	text string
	at   time.Time
}

// Allow reports whether to log the problem.
func (t *Throttle) Allow(problem error) bool {
	if problem.Error() == t.text || !t.at.IsZero() && time.Since(t.at) < Interval {
		return false
	}
	t.text, t.at = problem.Error(), time.Now()
	return true
}

// Resolved notes that there is no problem now, so that the same one is logged when it comes back.
func (t *Throttle) Resolved() { t.text = "" }

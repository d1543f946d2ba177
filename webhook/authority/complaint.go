package authority

import "time"

// complaint decides what is logged of problems that come again and again. Some are a bit
// different each time, such as by the port of a connection.
type complaint struct {
	text string
	at   time.Time
}

// quiet is how long there is no other complaint.
const quiet = time.Minute

// isNews says whether to log the problem.
func (c *complaint) isNews(problem error) bool {
	if problem.Error() == c.text || !c.at.IsZero() && time.Since(c.at) < quiet {
		return false
	}
	c.text, c.at = problem.Error(), time.Now()
	return true
}

// settled says that there is no problem now.
func (c *complaint) settled() { c.text = "" }

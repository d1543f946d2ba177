package differential

import (
	"fmt"
	"slices"
	"strings"
)

// expectIn is expect for a request of the case itself.
func (c *Case) expectIn(in Comparison) string {
	if in.What == "create" || in.What == "update" || in.What == "status" {
		return c.expect(in.Offline)
	}
	return ""
}

// expect reports that a case does not test its subject.
func (c *Case) expect(o Outcome) string {
	said := slices.Concat([]string{o.Message}, o.Causes, o.Warnings)
	if c.Want == "" || c.Want == "accepted" && o.Object != nil || slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.Want) }) {
		return ""
	}
	return fmt.Sprintf("%s: want %q, got %+v", c.Name, c.Want, o)
}

package equivalence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String returns the differences, and then the decisions.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests to each release, differences: %d", r.Requests, len(r.Differences))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "\n\n%s", d)
	}
	for _, reason := range sorted(r.Expected) {
		fmt.Fprintf(&b, "\n\nexpected %d times: %s", r.Expected[reason], reason)
	}
	b.WriteString("\n")
	for _, d := range r.Decisions {
		fmt.Fprintf(&b, "\n%s", d)
	}
	return b.String()
}

// String returns the request and both responses, as several lines.
func (d Difference) String() string {
	user := ""
	if d.User.UserName != "" {
		user = " by " + d.User.UserName
	}
	s := fmt.Sprintf("%s %s%s", d.Operation, d.Kind.GroupVersion().String()+" "+d.Kind.Kind, user)
	if d.Old != nil {
		s += "\n  old:    " + string(d.Old)
	}
	if d.Object != nil {
		s += "\n  object: " + string(d.Object)
	}
	text := func(r Response) string {
		switch {
		case !r.Allowed:
			return "denied: " + r.Message
		case len(d.Changed) > 0:
			return "allowed: " + string(r.Object)
		}
		return "allowed"
	}
	s += "\n  before: " + text(d.Before) + "\n  after:  " + text(d.After)
	if len(d.Changed) > 0 {
		s += "\n  differ: " + strings.Join(d.Changed, ", ")
	}
	return s
}

// String returns the decision in one line.
func (d Decision) String() string {
	s := fmt.Sprintf("%s: %s: allowed %d, denied %d", d.Release, d.Name, d.Allowed, d.Denied)
	if d.Changed > 0 {
		s = fmt.Sprintf("%s, changed %d", s, d.Changed)
	}
	switch {
	case d.Taken():
	case d.Undecided != "":
		s += " (" + d.Undecided + ")"
	case d.Allowed+d.Denied+d.Changed == 0:
		s += ": no request was decided"
	case d.Allowed+d.Changed == 0:
		s += ": never allowed a request"
	default:
		s += ": never denied or changed a request"
	}
	return s
}

// report returns what was found until now.
func (c *comparison) report() *Report {
	r := &Report{Requests: c.sent, Expected: c.declared, Differences: slices.Collect(maps.Values(c.found))}
	slices.SortFunc(r.Differences, func(a, b *Difference) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.key.text, b.key.text), cmp.Compare(a.key.how, b.key.how))
	})
	for _, s := range c.sides {
		for _, d := range s.decisions {
			d.Undecided = c.undecided[d.Name]
			r.Decisions = append(r.Decisions, *d)
		}
	}
	return r
}

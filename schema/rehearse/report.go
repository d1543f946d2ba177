package rehearse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Step is the step of the rehearsal in which a finding occurs.
type Step string

// The steps, in their order.
const (
	// Input means that the object cannot be replayed.
	Input Step = "input"
	// Before means that the old release has the same problem, so the upgrade is not the cause.
	Before Step = "before"
	// Upgrade compares a read from the new release with the same read from the old release.
	Upgrade Step = "upgrade"
	// Update means that a client of the new release that writes an object back, in Version and
	// without a change, loses fields that an update in the storage version preserves, and that a client
	// of the old release would not lose. The paths are those of the storage version.
	Update Step = "update"
	// Migration means that a client reads the object after it was written in the new storage version.
	Migration Step = "migration"
	// Rollback means that a client of the old release reads an object that the new release stored, or
	// writes it back without a change.
	Rollback Step = "rollback"
)

// Effect is the effect of a step on an object.
type Effect string

// The effects, in the order of reports.
const (
	// Invalid means that no server could have stored the object.
	Invalid Effect = "invalid"
	// Unreadable means that a read in Version fails. Every list and watch in Version then fails too.
	Unreadable Effect = "unreadable"
	// Refused means that an update without a change is refused in Version.
	Refused Effect = "refused"
	// Removed, Changed and Added concern the field at Path.
	Removed Effect = "removed"
	Changed Effect = "changed"
	Added   Effect = "added"
)

// Finding is an effect on objects that has one cause.
type Finding struct {
	Kind    string `json:"kind"` // with its group, such as CronTab.stable.example.com
	Step    Step   `json:"step"`
	Effect  Effect `json:"effect"`
	Version string `json:"version,omitempty"` // in which the objects are read or written
	// Path is a field, such as spec.toppings[].name, where [] stands for any element of a list or map.
	Path string `json:"path,omitempty"`
	// Cause is an error message, with … in place of values that differ between objects.
	Cause   string  `json:"cause,omitempty"`
	Objects int     `json:"objects"`
	Example Example `json:"example"` // the smallest object
}

// Example is an object that shows a finding.
type Example struct {
	Where  string          `json:"where,omitempty"` // from [Object]
	Name   string          `json:"name,omitempty"`  // with the namespace
	Error  string          `json:"error,omitempty"` // for Unreadable and Refused
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Stored json.RawMessage `json:"stored,omitempty"` // the object as the old release stored it
}

// Call counts the objects that a webhook has converted.
type Call struct {
	Kind    string `json:"kind"`
	Release string `json:"release"` // old or new
	From    string `json:"from"`
	To      string `json:"to"`
	Objects int    `json:"objects"`
}

// Report is the result of a rehearsal.
type Report struct {
	// Objects is the number of objects that were replayed.
	Objects int `json:"objects"`
	// Findings are sorted by kind, step, effect, version and path.
	Findings []Finding `json:"findings"`
	// Calls are the calls of conversion webhooks, sorted in the same way.
	Calls []Call `json:"calls"`
	// Unchecked lists the parts of the upgrade that were not replayed, with the reasons.
	Unchecked []string `json:"unchecked,omitempty"`
}

// Lost reports whether the upgrade or a rollback makes an object unreadable, makes an update fail, or
// removes or changes a value. Added fields, and findings of the steps Input and Before, do not count: if no object can be
// replayed, Objects is 0, and nothing is lost.
func (r *Report) Lost() bool { return slices.ContainsFunc(r.Findings, Finding.Lost) }

// Lost reports whether [Report.Lost] counts the finding.
func (f Finding) Lost() bool { return f.Effect != Added && f.Step != Before && f.Step != Input }

// String returns the finding with its example, as several lines.
func (f Finding) String() string {
	var b strings.Builder
	when := map[Step]string{Input: "", Before: " before the upgrade", Upgrade: " after the upgrade",
		Update: " in an update without a change", Migration: " after the migration", Rollback: " after a rollback"}
	b.WriteString(cmp.Or(f.Kind, "object"))
	if f.Version != "" {
		b.WriteString(" " + f.Version)
	}
	if f.Path != "" {
		b.WriteString(": " + f.Path)
	}
	fmt.Fprintf(&b, ": %s%s", f.Effect, when[f.Step])
	if f.Cause != "" {
		b.WriteString(": " + f.Cause)
	}
	plural := "s"
	if f.Objects == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, " (%d object%s)\n    for example %s", f.Objects, plural, f.Example.Name)
	if f.Example.Where != "" {
		fmt.Fprintf(&b, " (%s)", f.Example.Where)
	}
	for _, line := range []struct {
		name string
		text string
	}{
		{"error", f.Example.Error},
		{"before", string(f.Example.Before)},
		{"after", string(f.Example.After)},
		{"stored", string(f.Example.Stored)},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "\n    %s: %s", line.name, line.text)
		}
	}
	return b.String()
}

// maxFindings bounds the report, and with it the memory. The other causes are counted together.
const maxFindings = 1000

// cause is what the objects of a finding have in common.
type cause struct {
	Kind                 string
	Step                 Step
	Effect               Effect
	Version, Path, Cause string
}

// found is one object of a finding, or the smallest one.
type found struct {
	cause
	before, after any
	message       string // of an error

	objects, size int
	example       Example
}

// merge adds what was found for objects, in their order.
func (r *rehearsal) merge(items []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range items {
		if len(it.found) == 0 || it.found[0].Step != Input {
			r.objects++
		}
		if len(it.found) == 0 {
			continue
		}
		secrets := r.redact.secrets(append(it.seen, it.stored))
		counted := map[cause]bool{}
		for _, f := range it.found {
			f.Path, f.message = r.redact.path(f.Path), text(f.message, secrets)
			if f.Cause = it.general(f.message); r.found[f.cause] == nil && len(r.found) >= maxFindings {
				f.Path, f.Cause = "", "other causes"
			}
			known := r.found[f.cause]
			if known == nil {
				known = &found{cause: f.cause}
				r.found[f.cause] = known
			}
			if counted[f.cause] {
				continue
			}
			counted[f.cause] = true
			if known.objects++; known.objects > 1 && known.size <= len(it.stored) {
				continue
			}
			known.size = len(it.stored)
			known.example = Example{Where: it.where, Name: it.name, Stored: r.redact.object(it.stored, secrets)}
			known.example.Before, known.example.After = valueOf(f.before, secrets), valueOf(f.after, secrets)
			if known.example.Error = f.message; len(secrets) > 0 {
				known.example.Error = f.Cause // quoted values may have parts of secrets
			}
		}
	}
}

// valueOf returns the JSON of a value without secrets. It is nil if there is no value.
func valueOf(value any, secrets []string) json.RawMessage {
	if value == nil {
		return nil
	}
	text, _ := json.Marshal(hide(value, secrets)) // what was JSON is JSON
	return text
}

// report is the result.
func (r *rehearsal) report() *Report {
	report := &Report{Objects: r.objects, Findings: []Finding{}, Calls: []Call{}, Unchecked: slices.Sorted(maps.Keys(r.unchecked))}
	for c, f := range r.found {
		report.Findings = append(report.Findings, Finding{c.Kind, c.Step, c.Effect, c.Version, c.Path, c.Cause, f.objects, f.example})
	}
	steps := []Step{Input, Before, Upgrade, Update, Migration, Rollback}
	effects := []Effect{Invalid, Unreadable, Refused, Removed, Changed, Added}
	slices.SortFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Index(steps, a.Step)-slices.Index(steps, b.Step),
			slices.Index(effects, a.Effect)-slices.Index(effects, b.Effect),
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Cause, b.Cause))
	})
	for call, n := range r.calls {
		call.Objects = n
		report.Calls = append(report.Calls, call)
	}
	slices.SortFunc(report.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Release, b.Release), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return report
}

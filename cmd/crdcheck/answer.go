package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is the result for an object.
type answer struct {
	place
	Object   string    `json:"object"` // such as pizza.restaurant.example.com/margherita
	Valid    bool      `json:"valid"`
	Message  string    `json:"message,omitempty"`
	Causes   []cause   `json:"causes,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	problems []problem // the message in parts
	lineOf   func(path string) int
}

// cause is an error of a field, and the line of that.
type cause struct {
	metav1.StatusCause
	Line int `json:"line"`
}

// problem is a part of a message, and the line that it is about.
type problem struct {
	text string
	line int
}

// decodedField is how the decoder names a field.
var decodedField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)

// refuse adds an error to the answer. The server has the causes in an order that changes: here they
// have that of the file, and those of no field come last.
func (a *answer) refuse(err error) {
	text := err.Error()
	line := a.Line
	if match := decodedField.FindStringSubmatch(text); match != nil {
		line = a.lineOf(match[1])
	}
	var status apierrors.APIStatus
	var causes []cause
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			causes = append(causes, cause{c, a.lineOf(strings.TrimPrefix(c.Field, "<nil>"))})
		}
	}
	slices.SortStableFunc(causes, func(x, y cause) int {
		last := func(c cause) int { return strings.Count(c.Field, "<nil>") }
		return cmp.Or(last(x)-last(y), x.Line-y.Line, cmp.Compare(x.Field, y.Field), cmp.Compare(x.Message, y.Message))
	})
	a.Causes = append(a.Causes, causes...)
	var all []string
	for _, c := range causes {
		line = causes[0].Line
		all = append(all, fmt.Sprintf("%s: %s", cmp.Or(c.Field, "<nil>"), c.Message))
		if len(causes) > 1 {
			a.problems = append(a.problems, problem{all[len(all)-1], c.Line})
		}
	}
	if len(causes) < 2 {
		a.problems = append(a.problems, problem{text, line})
	} else if head, _, many := strings.Cut(text, ": ["); many {
		text = head + ": [" + strings.Join(all, ", ") + "]"
	}
	if a.Message != "" {
		a.Message += "\n"
	}
	a.Message += text
}

// findings are the problems and warnings for a report.
func (a *answer) findings() (all []finding) {
	for _, p := range a.problems {
		all = append(all, finding{place{a.File, p.line, a.Item}, false, nil, a.Object + ": " + p.text})
	}
	for _, w := range a.Warnings {
		all = append(all, finding{a.place, true, nil, a.Object + ": " + w})
	}
	return all
}

// check calls f with each object, which fills in the answer, and prints the answers.
func (c *command) check(ctx context.Context, crds, paths []string, f func(s subject, a *answer)) error {
	subjects, passedOver := c.subjects(ctx, c.parse(ctx, crds), paths)
	answers := []answer{}
	c.each(ctx, "validate", len(subjects), func(i int) string { return subjects[i].String() }, func(i int) error {
		s := subjects[i]
		a := answer{place: s.place, Object: s.String(), lineOf: s.lineOf}
		if s.version == nil {
			a.refuse(s.noMatch())
		} else {
			f(s, &a)
		}
		if ctx.Err() != nil {
			return ctx.Err() // which the answer may be about
		}
		if a.Valid = len(a.problems) == 0; !a.Valid {
			c.findings++
		}
		answers = append(answers, a)
		return nil
	})
	if len(answers) == 0 && !c.failed {
		c.fail(fmt.Errorf("validate: no object of a group that the definitions have (%d passed over)", passedOver))
	}
	if c.output == "json" {
		return c.printJSON(struct {
			Objects    []answer `json:"objects"`
			PassedOver int      `json:"passedOver"`
			Errors     []string `json:"errors"`
		}{answers, passedOver, append([]string{}, c.failures...)})
	}
	if slices.Contains(reports, c.output) {
		var all []finding
		for i := range answers {
			all = append(all, answers[i].findings()...)
		}
		return c.report(all)
	}
	for i := range answers {
		c.printVerdict(&answers[i])
	}
	fmt.Fprintf(c.out, "%d valid, %d invalid, %d passed over\n", len(answers)-c.findings, c.findings, passedOver)
	return nil
}

// printVerdict prints the warnings about an object, and whether it is valid.
func (c *command) printVerdict(a *answer) {
	for _, w := range a.Warnings {
		c.warn("%s: %s: %s", a.place, a.Object, indent(w))
	}
	switch len(a.problems) {
	case 0:
		fmt.Fprintf(c.out, "%s valid\n", a.Object)
	case 1:
		fmt.Fprintf(c.out, "%s invalid\n    %s: %s\n", a.Object, a.place, indent(a.problems[0].text))
	default:
		fmt.Fprintf(c.out, "%s invalid\n    %s:\n", a.Object, a.place)
		for _, p := range a.problems {
			fmt.Fprintf(c.out, "    * %s\n", indent(p.text))
		}
	}
}

package roundtrip

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

// report returns the message of a failure.
func (c *counterexample) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: the %s law does not hold for this object:\n\n%s\n", c.subject.kind.Kind, c.subject.route(), c.subject.law, indent(c.yaml()))
	if p := c.sample.past; p != nil {
		fmt.Fprintf(&b, "a client of %s %s in this object of %s:\n\n%s\n", c.subject.path[0], shorten(p.edit), c.subject.path[1], indent(yamlOf(p.original)))
	}
	if c.err != nil {
		fmt.Fprintf(&b, "the error:\n\n%s\n", indent(c.err.Error()))
	} else {
		fmt.Fprintf(&b, "%s:\n\n%s\n", cmp.Or(c.where, "the difference (-want +got)"), indent(c.diff()))
	}
	if c.stack != "" {
		fmt.Fprintf(&b, "where it panics:\n\n%s\n", indent(c.stack))
	}
	if c.sample.from != "" {
		fmt.Fprintf(&b, "%s.\n", c.sample.from)
	}
	for _, declared := range c.subject.declared() {
		fmt.Fprintf(&b, "%s\n", declared)
	}
	fmt.Fprintf(&b, "The object is the smallest of %d objects that were tried.", c.tried+1)
	return b.String()
}

func (c *counterexample) yaml() string { return yamlOf(c.object) }

// yamlOf returns the YAML of an object, or its text.
func yamlOf(object []byte) string {
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return string(object)
	}
	return string(text)
}

// shorten bounds the text of an edit.
func shorten(text string) string {
	if len(text) <= diffText {
		return text
	}
	return strings.ToValidUTF8(text[:diffText], "") + "…"
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t") + "\n"
}

// command returns the shell command that runs a test again, in the directory of its package, with
// as many iterations as led to the failure.
func command(test string, seed uint64, iterations int) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	pattern := "'" + strings.ReplaceAll(strings.Join(parts, "/"), "'", `'\''`) + "'"
	return fmt.Sprintf("%s=%d %s=%d go test -run %s .", seedVariable, seed, iterationsVariable, iterations, pattern)
}

// stackOf returns where a conversion function panics while f runs, from the log of the registry, or
// an empty string.
func stackOf(ctx context.Context, f func(ctx context.Context)) (stack string) {
	handler := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "stack" && stack == "" {
			stack = trim(a.Value.String())
		}
		return a
	}})
	f(klog.NewContext(ctx, logr.FromSlogHandler(handler)))
	return stack
}

// trim returns the author's own functions of a stack, between the panic and the registry or a law
// about Go values. Each takes two lines.
func trim(stack string) string {
	lines := strings.SplitAfter(stack, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			lines = lines[min(i+2, len(lines)):]
			break
		}
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "github.com/crdkit/crdkit/conversion.") || strings.HasPrefix(line, "github.com/crdkit/crdkit/roundtrip.(*subject).") {
			lines = lines[:i]
			break
		}
	}
	return strings.Join(lines, "")
}

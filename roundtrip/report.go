package roundtrip

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// report is what the author of a conversion reads when it is wrong.
func (c *counterexample) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: the law %s does not hold for this object:\n\n%s\n", c.subject.kind.Kind, c.subject.route(), c.subject.law, indent(c.yaml()))
	if c.err != nil {
		fmt.Fprintf(&b, "the error:\n\n%s\n", indent(c.err.Error()))
	} else {
		fmt.Fprintf(&b, "the difference (-want +got):\n\n%s\n", indent(c.diff()))
	}
	if c.stack != "" {
		fmt.Fprintf(&b, "where it panics:\n\n%s\n", indent(c.stack))
	}
	for _, declared := range c.subject.declared() {
		fmt.Fprintf(&b, "%s\n", declared)
	}
	fmt.Fprintf(&b, "It is the smallest of %d that were tried.", c.tried+1)
	return b.String()
}

func (c *counterexample) yaml() string {
	text, err := yaml.JSONToYAML(c.object)
	if err != nil {
		return string(c.object)
	}
	return string(text)
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t") + "\n"
}

// command returns the shell command that runs a test again, in the directory of its
// package. As many iterations as led to the failure do, whatever the default is.
func command(test string, seed uint64, iterations int) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	pattern := "'" + strings.ReplaceAll(strings.Join(parts, "/"), "'", `'\''`) + "'"
	return fmt.Sprintf("%s=%d %s=%d go test -run %s .", seedVariable, seed, iterationsVariable, iterations, pattern)
}

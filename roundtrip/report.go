package roundtrip

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// String names a subject as its subtest is named.
func (s *subject) String() string {
	return s.kind.GroupKind.String() + "/" + s.route() + "/" + string(s.law)
}

// report is what the author of a conversion reads when it is wrong.
func (c *counterexample) report(test string, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: the law %s does not hold for this object:\n\n%s\n", c.subject.kind.Kind, c.subject.route(), c.subject.law, indent(c.yaml()))
	if c.err != nil {
		fmt.Fprintf(&b, "the error:\n\n%s\n", indent(c.err.Error()))
	} else {
		fmt.Fprintf(&b, "the difference (-want +got):\n\n%s\n", indent(strings.ReplaceAll(c.diff, "\u00a0", " "))) // of which cmp has some, by chance
	}
	fmt.Fprintf(&b, "It is the smallest of %d that were tried, from object %d of seed %d. The same again:\n\n%s", c.tried+1, c.iteration+1, seed, indent(command(test, seed, c.iteration+1)))
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

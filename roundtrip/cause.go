package roundtrip

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// causes have the test that has reported a fault of the conversions, such as v1→v2→v1/round-trip, by the
// versions of its path and the signs of the fault, which may break several laws on each path that leads
// through a version.
type causes map[[2]string]string

// add adds the cause of a failure that a test reports.
func (r causes) add(c *counterexample) {
	for _, version := range c.subject.versions() {
		for _, sign := range c.signs() {
			key := [2]string{version, sign}
			r[key] = cmp.Or(r[key], c.subject.route()+"/"+string(c.subject.law))
		}
	}
}

// known returns a test that has reported a sign of a failure as that of a cause in a version on the path,
// or "" if a sign is not reported.
func (r causes) known(s *subject, broken *failure) (test string) {
	if len(r) == 0 {
		return ""
	}
	for _, sign := range broken.signs() {
		found := ""
		for _, version := range s.versions() {
			found = cmp.Or(found, r[[2]string{version, sign}])
		}
		if found == "" {
			return ""
		}
		test = cmp.Or(test, found)
	}
	return test
}

// versions returns the versions of the path whose functions are called: all but the hub, through
// which each conversion leads.
func (s *subject) versions() []string {
	hub := func(v string) bool { return v == s.kind.Hub || v == runtime.APIVersionInternal }
	if versions := slices.DeleteFunc(slices.Clone(s.path), hub); len(versions) > 0 {
		return versions
	}
	return s.path
}

// signs returns what failures of one cause have in common: the fields that differ, or the lines of an
// error, without what depends on the object.
func (f *failure) signs() (signs []string) {
	if f.err != nil {
		for line := range strings.Lines(f.err.Error()) {
			line = conversionOf.ReplaceAllString(strings.TrimSpace(line), "")
			signs = append(signs, valueOf.ReplaceAllString(line, "…"))
		}
	} else {
		for line := range strings.Lines(f.diff()) {
			if len(line) < 2 || line[1] != ' ' {
				continue // "and more"
			}
			path, _, found := strings.Cut(line[2:], ": ")
			if !found || strings.Contains(path, " ") {
				path = "" // the text of a whole object
			}
			signs = append(signs, userKey.ReplaceAllString(indexOf.ReplaceAllString(path, each), "$1"))
		}
	}
	slices.Sort(signs)
	return slices.Compact(signs)
}

var (
	// indexOf is an index, or a key in quotes.
	indexOf = regexp.MustCompile(`\[(?:\d+|"(?:[^"\\]|\\.)*")\]`)
	// userKey is a key of labels or annotations.
	userKey = regexp.MustCompile(`^(metadata\.(?:labels|annotations))[.\[].*`)
	// conversionOf is how the registry names the object in an error.
	conversionOf = regexp.MustCompile(`cannot convert .* from \S+ to \S+: `)
	// valueOf is a value in an error.
	valueOf = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\b\d+(?:\.\d+)?\b`)
)

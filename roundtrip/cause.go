package roundtrip

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// cause is a fault of the conversions as a report shows it, which may break several laws, on each
// path that leads through a version.
type cause struct {
	test     string   // the test with the report, such as v1→v2→v1/round-trip
	versions []string // of its path, without the hub
	signs    []string
}

// causes are those that the tests of a kind have reported.
type causes struct{ all []cause }

// add adds the cause of a failure that a test reports.
func (r *causes) add(c *counterexample) {
	s := c.subject
	r.all = append(r.all, cause{s.route() + "/" + string(s.law), s.versions(), c.signs()})
}

// known returns the test that has reported each sign of a failure as that of a cause in a version
// on the path, or "".
func (r *causes) known(s *subject, broken *failure) (test string) {
	if r == nil || len(r.all) == 0 {
		return ""
	}
	versions := s.versions()
	for _, sign := range broken.signs() {
		i := slices.IndexFunc(r.all, func(c cause) bool {
			through := func(v string) bool { return slices.Contains(versions, v) }
			return slices.Contains(c.signs, sign) && slices.ContainsFunc(c.versions, through)
		})
		if i < 0 {
			return ""
		}
		if test == "" {
			test = r.all[i].test
		}
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

package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

// Comparison is one request, and what both sides made of it.
type Comparison struct {
	Suite           *Suite
	Minor           int    // the server is of release 1.Minor
	Case            int    // in the suite
	What            string // old, old status, create, update, status, read, read back, definition
	Send            Send
	Request         string // the method and the URL
	Body, Old       []byte
	Server, Offline Outcome

	Diff       string   // empty if both are the same
	Known      []string // the names of differences that are known, if they are all there is
	Unexpected string   // the case does not test its subject
}

// diff is the difference between both sides.
func (c *Comparison) diff() string {
	return gocmp.Diff(c.timeless(c.Server), c.timeless(c.Offline))
}

// String is all that one needs to see what is wrong.
func (c Comparison) String() string {
	b := &strings.Builder{}
	if c.Suite != nil {
		fmt.Fprintf(b, "%s, case %d", c.Suite.Made, c.Case)
		if c.What != "definition" && c.Suite.Cases[c.Case].Name != "" {
			fmt.Fprintf(b, " (%s)", c.Suite.Cases[c.Case].Name)
		}
		fmt.Fprintf(b, ": %s\n", c.What)
		fmt.Fprintf(b, "definition:\n%s", indent(yamlOf(c.Suite.CRD.Spec)))
		if c.Suite.Before != nil {
			fmt.Fprintf(b, "definition while the old object was made:\n%s", indent(yamlOf(c.Suite.Before.Spec)))
		}
	}
	if len(c.Old) > 0 {
		fmt.Fprintf(b, "old object: %s\n", c.Old)
	}
	fmt.Fprintf(b, "%s\n%s\nserver:  %s\noffline: %s\n", c.Request, c.Body, mustJSON(c.Server), mustJSON(c.Offline))
	fmt.Fprintf(b, "(-server +offline):\n%s", c.Diff)
	return b.String()
}

func yamlOf(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// Tally counts requests. It may be used by several goroutines.
type Tally struct {
	// Limit bounds the requests, if it is not 0.
	Limit int

	mu            sync.Mutex
	taken         int
	requests      int
	whats         map[string]int
	known         map[string]int
	explained     int // those with differences that are known
	disagreements []Comparison
	unexpected    []string
}

// ErrEnough says that there were as many requests as there should be.
var ErrEnough = errors.New("enough requests")

// take reports whether there may be one more request.
func (t *Tally) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Limit > 0 && t.taken >= t.Limit {
		return false
	}
	t.taken++
	return true
}

// add counts a comparison.
func (t *Tally) add(c Comparison) {
	if c.Diff = c.diff(); c.Diff != "" {
		c.Known = explain(c)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if t.whats == nil {
		t.whats, t.known = map[string]int{}, map[string]int{}
	}
	verdict := "accepted"
	if c.Offline.Code >= 300 {
		verdict = "refused"
	}
	t.whats[c.What+" "+verdict]++
	switch {
	case c.Diff == "":
	case c.Known != nil:
		t.explained++
		for _, name := range c.Known {
			t.known[name]++
		}
	default:
		t.disagreements = append(t.disagreements, c)
	}
	if c.Unexpected != "" {
		t.unexpected = append(t.unexpected, c.Unexpected)
	}
}

// Requests is how many there were.
func (t *Tally) Requests() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests
}

// Disagreements are those that are not known.
func (t *Tally) Disagreements() []Comparison {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.disagreements)
}

// Unexpected names the cases that do not test their subject.
func (t *Tally) Unexpected() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.unexpected)
}

// Summary counts the requests by what they were, and the differences that are known, and
// ends with the line that counts all.
func (t *Tally) Summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &strings.Builder{}
	for _, what := range slices.Sorted(maps.Keys(t.whats)) {
		fmt.Fprintf(b, "requests: %s: %d\n", what, t.whats[what])
	}
	for _, k := range known {
		if n := t.known[k.name]; n > 0 {
			fmt.Fprintf(b, "known: %s: %d: %s\n", k.name, n, k.cause)
		}
	}
	fmt.Fprintf(b, "differential: %d requests, %d disagreements, %d known differences\n", t.requests, len(t.disagreements), t.explained)
	return b.String()
}

// CompareDefinition compares what both sides say of a definition.
func CompareDefinition(ctx context.Context, server *Server, tally *Tally, made string, crd *apiextensionsv1.CustomResourceDefinition) error {
	if !tally.take() {
		return ErrEnough
	}
	_, err := schema.New(crd)
	want, err := Refusal(err)
	if err != nil {
		return err
	}
	got, err := Refusal(server.Refuses(ctx, crd))
	if err != nil {
		return err
	}
	tally.add(Comparison{Suite: &Suite{CRD: crd, Made: made}, Minor: server.minor, What: "definition", Request: "POST CustomResourceDefinition", Server: got, Offline: want})
	return nil
}

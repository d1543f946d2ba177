package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/breaking"
)

// change is a change that breaks something, and how it is proven.
type change struct {
	File       string          `json:"file"`       // of the new definition
	Line       int             `json:"line"`       // of the field there, or of what is around it
	Definition string          `json:"definition"` // its kind and group
	Effect     breaking.Effect `json:"effect"`
	Version    string          `json:"version,omitempty"`
	Path       string          `json:"path,omitempty"`
	What       string          `json:"what"`
	Why        string          `json:"why"`
	Unproven   bool            `json:"unproven,omitempty"`
	Object     json.RawMessage `json:"object,omitempty"` // was accepted
	Stored     json.RawMessage `json:"stored,omitempty"` // and is what that replaces
	// Subresource is status if only the status is written.
	Subresource string   `json:"subresource,omitempty"`
	Errors      []string `json:"errors,omitempty"` // is refused now
	Altered     []string `json:"altered,omitempty"`
	Blocked     bool     `json:"blocked,omitempty"` // is refused even if nothing changes
	// Accepted is the reason why the change is accepted. It is nil if it is not.
	Accepted *acceptance `json:"accepted,omitempty"`
}

func (b change) identity() identity {
	return identity{Definition: b.Definition, Version: b.Version, Path: b.Path, What: b.What}
}

// comparison is what diff has found.
type comparison struct {
	definitions   int
	changes       []change
	stale         []*entry // accept changes that are not there
	allowUnproven bool
	failOnStale   bool
}

// counts returns how many changes there are of each sort, and how many findings that makes.
func (all comparison) counts() (proven, unproven, accepted, findings int) {
	for _, b := range all.changes {
		switch {
		case b.Accepted != nil:
			accepted++
		case b.Unproven:
			unproven++
		default:
			proven++
		}
	}
	if findings = proven; !all.allowUnproven {
		findings += unproven
	}
	if all.failOnStale {
		findings += len(all.stale)
	}
	return proven, unproven, accepted, findings
}

func (c *command) diff() *cobra.Command {
	var all comparison
	var timeout time.Duration
	var objects []string
	var known accepted
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Report what an upgrade of definitions would break",
		Long: `Report the changes between two versions of definitions that break stored objects or
clients: what has changed, what breaks for that, and an object that proves it. That object
was accepted before, and is refused or altered now.

The effect of a change is one of:
  refused   An object or an update that was accepted is refused.
  altered   An object is stored or read with other data than before.
  clients   Something else that clients rely on is gone or changed: a definition with all its
            objects, a name, a version, a subresource, a printer column, or how server-side
            apply merges.

Where no object was found that proves a change, it is marked as unproven: a pattern or a
rule that has changed may allow less than before, or not. It counts as a breaking change for
the exit code, unless --allow-unproven is given. Objects of a cluster help to find proofs:
give them with --objects.

A change that you have reviewed can be accepted: -o accept prints an entry for each change
that is not accepted yet, and --accept reads the entries, each of which must have a reason.
An accepted change is still printed, with the reason, and does not count for the exit code.
An entry accepts exactly the change that it repeats. If the compared definitions no longer
have the change, because OLD has moved on, the entry is reported as stale: remove it. It
hides nothing, so it counts for the exit code only with --fail-on-stale. With that flag, an
entry of a definition that is not compared is stale too, so compare all of them in one run.

A proof may be long: one that a list has too many items, for example. More than 2 KiB of it
are printed with -o json only.

The search for proofs tries the same objects on each machine. If it takes longer than
--timeout, the exit code is 3, whatever was found until then.`,
		Example: `  # Check a change before it is committed
  git show HEAD:config/crd/pizzas.yaml | crdcheck diff - config/crd/pizzas.yaml

  # Look for proofs among the objects of a cluster first
  kubectl get pizzas -A -o yaml >pizzas.yaml
  crdcheck diff --objects pizzas.yaml old.yaml new.yaml

  # Accept the changes that there are: write a reason into each entry
  crdcheck diff --accept accepted.yaml -o accept old.yaml new.yaml >>accepted.yaml
  crdcheck diff --accept accepted.yaml old.yaml new.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("an old and a new file must be specified\nSee '%s --help' for usage", cmd.CommandPath())
			}
			if args[0] == "-" && args[1] == "-" {
				return errors.New("standard input has either the old or the new definitions, not both")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				limited, cancel := context.WithTimeoutCause(ctx, timeout, overtime{timeout})
				defer cancel()
				ctx = limited
			}
			old, now := c.parse(ctx, args[:1]), c.parse(ctx, args[1:])
			samples, _ := c.subjects(ctx, old, objects)
			c.readAccepted(&known)
			all.definitions, all.changes, all.stale = len(old.list), []change{}, []*entry{}
			if !c.failed { // what is missing would be taken for removed
				all.changes = c.compare(ctx, old, now, samples)
			}
			for i := range all.changes {
				all.changes[i].Accepted = known.accept(all.changes[i].identity())
			}
			if !c.failed { // else there may be more changes
				stale, others := known.stale(old, now)
				if all.stale = stale; all.failOnStale {
					all.stale = append(all.stale, others...)
				} else {
					c.noteOthers(others)
				}
			}
			return c.printComparison(all)
		},
	}
	cmd.Flags().BoolVar(&all.allowUnproven, "allow-unproven", false, "Exit with 0 if there are no changes but unproven ones.")
	known.add(cmd.Flags())
	cmd.Flags().BoolVar(&all.failOnStale, "fail-on-stale", false, "Exit with 1 if an entry of --accept accepts no change.")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "The longest time to take, such as 5m. After it, the exit code is 3. Zero is no limit.")
	cmd.Flags().StringArrayVar(&objects, "objects", nil, "A file or directory with objects that may prove changes. May be given more than once.")
	return cmd
}

// printComparison prints what was found, and counts it.
func (c *command) printComparison(all comparison) error {
	proven, unproven, accepted, findings := all.counts()
	c.findings = findings
	switch c.output {
	case "json":
		return c.printJSON(struct {
			Definitions int      `json:"definitions"`
			Changes     []change `json:"changes"`
			Stale       []*entry `json:"stale"`
			Errors      []string `json:"errors"`
		}{all.definitions, all.changes, all.stale, append([]string{}, c.failures...)})
	case "accept":
		var open []identity
		for _, b := range all.changes {
			if b.Accepted == nil {
				open = append(open, b.identity())
			}
		}
		return c.printEntries(open)
	case "github", "sarif":
		var found []finding
		for _, b := range all.changes {
			found = append(found, finding{place{File: b.File, Line: b.Line}, b.Unproven && all.allowUnproven, b.Accepted, strings.TrimSpace(b.text())})
		}
		for _, e := range all.stale {
			found = append(found, finding{e.place, !all.failOnStale, nil, e.text()})
		}
		return c.report(found)
	}
	for _, b := range all.changes {
		fmt.Fprint(c.out, b.text())
	}
	for _, e := range all.stale {
		fmt.Fprintf(c.out, "%s: %s\n", e.place, indent(e.text()))
	}
	if c.failed {
		return nil
	}
	total := count(proven, "breaking change")
	for _, more := range []struct {
		n    int
		what string
	}{{unproven, "unproven"}, {accepted, "accepted"}, {len(all.stale), "stale"}} {
		if more.n > 0 {
			total += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	fmt.Fprintf(c.out, "%s compared: %s\n", count(all.definitions, "definition"), total)
	if proven+unproven > 0 {
		c.say("To accept a change, add its entry and a reason to a file for --accept: -o accept prints the entries")
	}
	return nil
}

// compare returns what breaks when new definitions replace the old ones. Samples are tried as proofs.
func (c *command) compare(ctx context.Context, old, now definitions, samples []subject) []change {
	changes := []change{}
	var objects []map[string]any
	for _, s := range samples {
		var u unstructured.Unstructured
		if u.UnmarshalJSON(s.asJSON) == nil {
			objects = append(objects, u.Object)
		}
	}
	defer c.progress.clear()
	progress := breaking.Progress(func(b breaking.Change) {
		at := slices.Index(old.list, old.byKind[b.Kind]) + 1
		c.progress.show("diff %d/%d %s", at, len(old.list), strings.TrimSpace(fmt.Sprint(b.Kind, " ", b.Version, " ", b.Path)))
	})
	all, err := breaking.Changes(ctx, schema.Release{Definitions: old.list}, schema.Release{Definitions: now.list}, breaking.Samples(objects...), progress)
	if err != nil && !c.interrupted(ctx) {
		c.fail(err)
	}
	for _, b := range all {
		found := change{Definition: b.Kind.String(), Effect: b.Effect, Version: b.Version, Path: b.Path, What: b.What, Why: b.Why, Unproven: b.Unproven}
		if b.Path == "" { // the definition is removed
			o := old.of[old.byKind[b.Kind]]
			found.File, found.Line = o.File, o.Line
		} else {
			is := now.byKind[b.Kind]
			if is == nil { // it was compared with the only one, of another kind
				is = now.list[0]
			}
			o := now.of[is]
			found.File, found.Line = o.File, o.lineOfChange(b)
		}
		if b.Proof != nil {
			found.Object, found.Stored, found.Subresource = b.Proof.Object, b.Proof.Stored, b.Proof.Subresource
			found.Altered, found.Blocked = b.Proof.Altered, b.Proof.Blocked
			for _, err := range b.Proof.Errors {
				found.Errors = append(found.Errors, err.Error())
			}
		}
		changes = append(changes, found)
	}
	return changes
}

// longest is how many bytes of an object a person reads.
const longest = 2 << 10

// text is a change for a person to read.
func (b change) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", b.identity())
	if b.Accepted != nil {
		fmt.Fprintf(&text, "    Accepted: %s\n", b.Accepted)
	}
	fmt.Fprintf(&text, "    Why (%s): %s.\n", b.Effect, b.Why)
	if b.Stored != nil {
		fmt.Fprintf(&text, "    Stored: %s\n", logtext.Cut(string(b.Stored), longest))
	}
	if b.Object != nil {
		proof := "Proof"
		if b.Subresource != "" {
			proof = "Proof, a write of its " + b.Subresource
		}
		fmt.Fprintf(&text, "    %s: %s\n", proof, logtext.Cut(string(b.Object), longest))
	}
	for _, err := range b.Errors {
		fmt.Fprintf(&text, "    Refused: %s\n", indent(err))
	}
	if b.Blocked {
		fmt.Fprintf(&text, "    %s\n", "Blocked: if such an object is stored, each update is refused, even one that changes nothing.")
	}
	for _, altered := range b.Altered {
		fmt.Fprintf(&text, "    Altered: %s\n", altered)
	}
	if b.Unproven {
		fmt.Fprintf(&text, "    %s\n", "Unproven: no object was found that shows it. There may be none; --objects may have one.")
	}
	return text.String()
}

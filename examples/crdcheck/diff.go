package crdcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/crdkit/crdkit/schema"
)

// change is a change that breaks something, and how it is proven.
type change struct {
	Definition string          `json:"definition"` // its kind and group
	Version    string          `json:"version,omitempty"`
	Path       string          `json:"path,omitempty"`
	What       string          `json:"what"`
	Why        string          `json:"why"`
	Unproven   bool            `json:"unproven,omitempty"`
	Object     json.RawMessage `json:"object,omitempty"` // was accepted
	Errors     []string        `json:"errors,omitempty"` // and is refused now
	Altered    []string        `json:"altered,omitempty"`
}

func (c *command) diff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Report what an upgrade of definitions would break",
		Long: `Report the changes between two versions of definitions that break stored objects or clients:
what has changed, what breaks for that, and an object that proves it, which was accepted
before and is refused or altered now. A change for which no such object was found is
marked as unproven.`,
		Example: `  # Check a change before it is committed
  git show HEAD:config/crd/pizzas.yaml | crdcheck diff - config/crd/pizzas.yaml`,
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
			old, new := c.parse(cmd.Context(), args[:1]).list, c.parse(cmd.Context(), args[1:]).list
			if c.failed {
				return nil
			}
			changes := c.compare(cmd.Context(), old, new)
			c.findings = len(changes)
			if c.output == "json" {
				return c.printJSON(struct {
					Definitions int      `json:"definitions"`
					Changes     []change `json:"changes"`
				}{len(old), changes})
			}
			for _, change := range changes {
				c.printChange(change)
			}
			fmt.Fprintf(c.out, "%s compared: %s\n", count(len(old), "definition"), count(len(changes), "breaking change"))
			return nil
		},
	}
}

// compare compares definitions of the same kind; if there is but one old and one new, they
// are compared even if the kind has changed.
func (c *command) compare(ctx context.Context, old, new []*schema.Definition) []change {
	changes := []change{}
	c.each(ctx, "diff", len(old), func(i int) string { return old[i].GroupKind().String() }, func(i int) error {
		name := old[i].GroupKind().String()
		at := slices.IndexFunc(new, func(d *schema.Definition) bool { return d.GroupKind() == old[i].GroupKind() })
		if at < 0 && len(old) == 1 && len(new) == 1 {
			at = 0
		}
		if at < 0 {
			changes = append(changes, change{Definition: name, What: "the definition is removed", Why: "all its objects are deleted, and clients find nothing"})
			return nil
		}
		for _, b := range schema.BreakingChanges(ctx, old[i], new[at]) {
			found := change{Definition: name, Version: b.Version, Path: b.Path, What: b.What, Why: b.Why, Unproven: b.Unproven}
			if b.Proof != nil {
				found.Object, found.Altered = b.Proof.Object, b.Proof.Altered
				for _, err := range b.Proof.Errors {
					found.Errors = append(found.Errors, err.Error())
				}
			}
			changes = append(changes, found)
		}
		return ctx.Err()
	})
	return changes
}

// printChange prints a change as text.
func (c *command) printChange(b change) {
	where := b.Definition
	for _, more := range []string{b.Version, b.Path} {
		if more != "" {
			where += " " + more
		}
	}
	fmt.Fprintf(c.out, "%s: %s\n    Why: %s.\n", where, b.What, b.Why)
	if b.Object != nil {
		fmt.Fprintf(c.out, "    Proof: %s\n", b.Object)
	}
	for _, text := range b.Errors {
		fmt.Fprintf(c.out, "    Refused: %s\n", indent(text))
	}
	for _, text := range b.Altered {
		fmt.Fprintf(c.out, "    Altered: %s\n", text)
	}
	if b.Unproven {
		fmt.Fprintf(c.out, "    %s\n", "Unproven: no object was found that shows it; there may be none.")
	}
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crdkit/crdkit/schema"
)

// fault is a fault and the file that it is in.
type fault struct {
	File string `json:"file"`
	schema.Problem
}

// text returns the fault and its advice, as they are printed.
func (f fault) text() string {
	text := f.File + ":" + indent(f.String())
	if f.Advice != "" {
		text += "\n    " + f.Advice
	}
	return text
}

// countWarnings returns how many of the faults are warnings.
func countWarnings(faults []fault) (n int) {
	for _, f := range faults {
		if f.Warning {
			n++
		}
	}
	return n
}

// summary counts faults, of which some are warnings.
func summary(faults, warnings int) string {
	text := count(faults-warnings, "fault")
	if warnings > 0 {
		text += ", " + count(warnings, "warning")
	}
	return text
}

func (c *command) lint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint CRD...",
		Short: "Report what the API server would not accept in definitions",
		Long: `Report every problem for which the API server of Kubernetes 1.37 would not create a
definition, with its place in the file, and with advice where the message is not enough. What
the server accepts with a warning is reported as a warning. Warnings alone do not make the exit
code 1. Servers before 1.37 accept some CEL rules that cost too much for 1.37: the advice says
which.`,
		Example: `  # Check all definitions of a project
  crdcheck lint config/crd

  # Check what a generator prints
  controller-gen crd paths=./... output:stdout | crdcheck lint -`,
		Args: atLeast(1, "a file with definitions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			files := c.read(cmd.Context(), args)
			faults, definitions := []fault{}, 0
			c.each(cmd.Context(), "lint", len(files), func(i int) string { return files[i].name }, func(i int) error {
				f := files[i]
				documents := c.findDefinitions(f)
				if len(documents) == 0 && f.named {
					return fmt.Errorf("%s: there is no CustomResourceDefinition", f.name)
				}
				for _, d := range documents {
					for _, o := range d.objects {
						definitions++
						found, err := o.check()
						for _, one := range found {
							faults = append(faults, fault{f.name, one})
						}
						if err != nil {
							c.fail(fmt.Errorf("%s: %w", o.place, err))
						}
					}
				}
				return nil
			})
			if definitions == 0 && !c.failed {
				c.fail(errors.New("lint: no CustomResourceDefinition"))
			}
			warnings := countWarnings(faults)
			c.findings = len(faults) - warnings
			if c.output == "json" {
				return c.printJSON(struct {
					Definitions int      `json:"definitions"`
					Faults      []fault  `json:"faults"`
					Errors      []string `json:"errors"`
				}{definitions, faults, append([]string{}, c.failures...)})
			}
			if slices.Contains(reports, c.output) {
				var all []finding
				for _, f := range faults {
					message := strings.TrimSpace(strings.Join([]string{f.Definition, f.Path, f.Message}, " ") + "\n" + f.Advice)
					all = append(all, finding{place{File: f.File, Line: f.Line}, f.Warning, nil, message})
				}
				return c.report(all)
			}
			for _, f := range faults {
				fmt.Fprintln(c.out, f.text())
			}
			fmt.Fprintf(c.out, "%s checked: %s\n", count(definitions, "definition"), summary(len(faults), warnings))
			return nil
		},
	}
}

// indent indents all lines but the first.
func indent(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") }

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

package crdcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK       = 0
	exitFindings = 1
	exitError    = 2
)

// command is what the subcommands share.
type command struct {
	in          io.Reader
	out, errOut io.Writer
	output      string // text or json
	findings    int
	failed      bool // something could not be read
	progress    *progress
}

// Run runs the command, and returns its exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	c := &command{in: in, out: out, errOut: errOut, progress: newProgress(errOut)}
	root := c.root()
	root.SetArgs(append([]string{}, args...)) // of nil, cobra makes those of the process
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	c.progress.clear()
	if err != nil {
		c.fail(err)
	}
	switch {
	case c.failed:
		return exitError
	case c.findings > 0:
		return exitFindings
	}
	return exitOK
}

// fail says what went wrong.
func (c *command) fail(err error) {
	c.failed = true
	c.progress.clear()
	fmt.Fprintf(c.errOut, "error: %s\n", err)
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "crdcheck",
		Short: "Say what an API server would make of CustomResourceDefinitions and custom objects",
		Long: `crdcheck says, without a cluster, what an API server would make of
CustomResourceDefinitions and of custom objects.

Files are YAML or JSON. A directory stands for the .yaml, .yml and .json files below it,
and - for standard input.

The exit code is 0 if nothing was found, 1 if something was, and 2 if the command line is
wrong or some of the input could not be read.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{"text", "json"}, c.output) {
				return fmt.Errorf("unable to match an output format for %q, allowed formats are: json,text", c.output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q\nSee 'crdcheck --help' for usage", args[0])
			}
			return cmd.Help()
		},
	}
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "text", "Output format. One of: (json, text).")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
	})
	root.AddCommand(c.lint(), c.validate(), c.prune(), c.setDefaults(), c.diff())
	return root
}

// atLeast returns an error that says what is missing.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("%s must be specified\nSee '%s --help' for usage", what, cmd.CommandPath())
		}
		return nil
	}
}

// json prints the answer as JSON.
func (c *command) json(answer any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// each calls f with each name, and shows how far it is. It goes on after errors, which it
// returns, until the context ends.
func (c *command) each(ctx context.Context, what string, n int, name func(i int) string, f func(i int) error) {
	for i := range n {
		if ctx.Err() != nil {
			c.fail(errors.New("interrupted"))
			return
		}
		c.progress.show("%s %d/%d %s", what, i+1, n, name(i))
		if err := f(i); err != nil {
			c.fail(err)
		}
	}
	c.progress.clear()
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK       = 0
	exitFindings = 1
	exitError    = 2
	// exitIncomplete is for a check that began and could not be completed.
	exitIncomplete = 3
)

// command is what the subcommands share.
type command struct {
	in       io.Reader
	out      *bufio.Writer // which keeps the first error, for the end
	errOut   io.Writer
	output   string // text, json, github or sarif
	findings int
	failed   bool     // something could not be read
	failures []string // why
	// incomplete says that the check ended before it was complete.
	incomplete bool
	progress   *progress
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command, and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	c := &command{in: in, out: bufio.NewWriter(out), errOut: errOut, progress: newProgress(errOut)}
	root := c.root()
	root.SetArgs(append([]string{}, args...)) // of nil, cobra makes those of the process
	root.SetIn(in)
	root.SetOut(c.out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	c.progress.clear()
	if flushed := c.out.Flush(); err == nil {
		err = flushed
	}
	if err != nil {
		c.fail(err)
	}
	switch {
	case c.incomplete:
		return exitIncomplete
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
	c.failures = append(c.failures, err.Error())
	c.say("error: %s", err)
}

// warn reports what may surprise, but is not a fault.
func (c *command) warn(format string, args ...any) {
	c.say("Warning: "+format, args...)
}

// say prints a line on standard error, after what has been printed on standard output.
func (c *command) say(format string, args ...any) {
	c.progress.clear()
	c.out.Flush() // an error stays for the end
	fmt.Fprintf(c.errOut, format+"\n", args...)
}

// interrupted reports whether the context has ended, and tells the user once.
func (c *command) interrupted(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	err := errors.New("interrupted")
	if late := (overtime{}); errors.As(context.Cause(ctx), &late) {
		err, c.incomplete = late, true
	}
	if !slices.Contains(c.failures, err.Error()) {
		c.fail(err)
	}
	return true
}

// overtime is the error of a command that a flag gives less time than it needs.
type overtime struct{ time.Duration }

func (t overtime) Error() string { return fmt.Sprintf("the timeout of %s is over", t.Duration) }

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "crdcheck",
		Short: "Say what an API server would make of CustomResourceDefinitions and custom objects",
		Long: `crdcheck says, without a cluster, what an API server would make of
CustomResourceDefinitions and of custom objects.

Files are YAML or JSON. A directory stands for the .yaml, .yml and .json files below it,
and - for standard input, once. Other files are skipped.

The exit code is 0 if nothing was found, 1 if something was, 2 if the command line is
wrong, some of the input could not be read, or there is nothing to check, and 3 if the check
could not be completed.

Commands, flags, exit codes, files of --accept and the output formats other than text are
stable: they change as crdkit's Go API does, and never in a patch release. Text for people
may change in any release.`,
		Version:           buildVersion(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			formats := []string{"json", "text"}
			if slices.Contains([]string{"lint", "validate", "diff"}, cmd.Name()) {
				formats = append(formats, reports...)
			}
			if slices.Contains([]string{"diff", "rehearse"}, cmd.Name()) {
				formats = append(formats, "accept")
			}
			if !slices.Contains(formats, c.output) {
				return fmt.Errorf("unable to match an output format for %q, allowed formats are: %s", c.output, strings.Join(formats, ","))
			}
			paths := slices.Clone(args)
			for _, flag := range []string{"crd", "from", "to", "objects"} {
				more, _ := cmd.Flags().GetStringArray(flag) // not every command has the flag
				paths = append(paths, more...)
			}
			stdin := slices.DeleteFunc(paths, func(path string) bool { return path != "-" })
			if len(stdin) > 1 {
				return errors.New("standard input can be read only once")
			}
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "text", "Output format. lint and validate: (json, text, github, sarif); diff: (json, text, github, sarif, accept); rehearse: (json, text, accept); other commands: (json, text).")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
	})
	root.AddCommand(c.lint(), c.convert(), c.validate(), c.diff(), c.rehearse())
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

// buildVersion is the version of the module or commit that the command was built of.
func buildVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// printJSON prints the answer as JSON.
func (c *command) printJSON(answer any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// each calls f with each name, and shows how far it is. It goes on after errors, which it
// says, until the context ends.
func (c *command) each(ctx context.Context, what string, n int, name func(i int) string, f func(i int) error) {
	for i := range n {
		if c.interrupted(ctx) {
			return
		}
		c.progress.show("%s %d/%d %s", what, i+1, n, name(i))
		if err := f(i); err != nil && !c.interrupted(ctx) {
			c.fail(err)
		}
	}
	c.progress.clear()
}

package show

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// maxShown is how many lines of input or output are shown.
const maxShown = 24

// Kubectl runs kubectl as an administrator.
type Kubectl struct {
	Path       string    // of the binary
	Kubeconfig string    // the path of the configuration
	Out        io.Writer // where commands and what they print are shown
}

// Show runs kubectl, shows the command and what it prints, and returns that. The error says
// only that the command failed: why is in the output.
func (k Kubectl) Show(ctx context.Context, stdin string, args ...string) (string, error) {
	command := Quote(args)
	if stdin != "" {
		command += " <<EOF\n" + shorten(strings.TrimSpace(stdin)) + "\nEOF"
	}
	return k.ShowAs(ctx, command, stdin, args...)
}

// ShowAs is Show with another text for the command, after the word kubectl.
func (k Kubectl) ShowAs(ctx context.Context, command, stdin string, args ...string) (string, error) {
	fmt.Fprintln(k.Out, "$ kubectl "+command)
	output, err := k.Run(ctx, stdin, args...)
	fmt.Fprint(k.Out, Indent(output))
	return output, err
}

// Run is Show without showing anything.
func (k Kubectl) Run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := k.Command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

// Command returns a command that is yet to be started.
func (k Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.Path, append([]string{"--kubeconfig=" + k.Kubeconfig}, args...)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// Succeed shows kubectl, which must succeed, and print each of the texts.
func (k Kubectl) Succeed(ctx context.Context, stdin string, args []string, texts ...string) error {
	output, err := k.Show(ctx, stdin, args...)
	if err != nil {
		return failed(args, err, output)
	}
	return Contains(output, texts...)
}

// Fail shows kubectl, which must fail by itself, and print each of the texts. When the context
// ends, its error is returned.
func (k Kubectl) Fail(ctx context.Context, stdin string, args []string, texts ...string) error {
	output, err := k.Show(ctx, stdin, args...)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("kubectl %s succeeded, but must not: %s", args[0], output)
	case !errors.As(err, &exit) || !exit.Exited(): // a signal is not what kubectl says
		return failed(args, err, output)
	}
	return Contains(output, texts...)
}

// Try runs kubectl, which must succeed, and shows nothing.
func (k Kubectl) Try(ctx context.Context, stdin string, args ...string) error {
	if output, err := k.Run(ctx, stdin, args...); err != nil {
		return failed(args, err, output)
	}
	return nil
}

// Read reads an object, or a list of objects, into a Go value and shows nothing.
func (k Kubectl) Read(ctx context.Context, into any, args ...string) error {
	args = append([]string{"get", "-o", "json"}, args...)
	output, err := k.Run(ctx, "", args...)
	if err != nil {
		return failed(args, err, output)
	}
	return json.Unmarshal([]byte(output), into)
}

// Apply applies a manifest that is too long to be shown, on the server, and shows that as if
// the manifest were a file of that name.
func (k Kubectl) Apply(ctx context.Context, manifest []byte, name string) error {
	args := []string{"apply", "--server-side", "-f", "-"}
	output, err := k.ShowAs(ctx, "apply --server-side -f "+name, string(manifest), args...)
	if err != nil {
		return failed(args, err, output)
	}
	return nil
}

func failed(args []string, err error, output string) error {
	return fmt.Errorf("kubectl %s: %w: %s", Quote(args), err, output)
}

// Contains returns an error with the output if it lacks one of the texts.
func Contains(output string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(output, text) {
			return fmt.Errorf("the output lacks %q:\n%s", text, output)
		}
	}
	return nil
}

// Quote writes arguments for a shell. Those that it could take for something else stand
// between single quotes, where only a single quote has a meaning (POSIX, Shell Command
// Language, 2.2.2).
func Quote(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if arg == "" || strings.ContainsFunc(arg, special) {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// special reports whether a shell may take a character for something else.
func special(r rune) bool {
	return !('A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("_./:=,@%+-", r))
}

// Indent sets the output of a command apart from the command.
func Indent(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(shorten(text), "\n", "\n  ") + "\n"
}

func shorten(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= maxShown {
		return text
	}
	return strings.Join(lines[:maxShown/2], "\n") + fmt.Sprintf("\n… (%d lines)\n", len(lines)-maxShown) + strings.Join(lines[len(lines)-maxShown/2:], "\n")
}

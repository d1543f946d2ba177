package walkthrough

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// maxShown is how many lines of input or output are shown.
const maxShown = 24

// kubectl runs kubectl, shows the command and what it prints, and returns that. The error
// says only that the command failed: why is in the output.
func (r *Restaurant) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	shown := "$ kubectl " + quoteAll(args)
	if stdin != "" {
		shown += " <<EOF\n" + shorten(strings.TrimSpace(stdin)) + "\nEOF"
	}
	fmt.Fprintln(r.out, shown)
	output, err := r.run(ctx, stdin, args...)
	fmt.Fprint(r.out, indent(output))
	return output, err
}

// run runs kubectl and shows nothing.
func (r *Restaurant) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.kubectlBin, append([]string{"--kubeconfig=" + r.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

// succeed runs kubectl, which must succeed, and print each of the texts.
func (r *Restaurant) succeed(ctx context.Context, stdin string, args []string, texts ...string) error {
	output, err := r.kubectl(ctx, stdin, args...)
	if err != nil {
		return fmt.Errorf("kubectl failed: %w: %s", err, output)
	}
	return contains(output, texts...)
}

// fail runs kubectl, which must fail, and print each of the texts.
func (r *Restaurant) fail(ctx context.Context, stdin string, args []string, texts ...string) error {
	output, err := r.kubectl(ctx, stdin, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return fmt.Errorf("kubectl succeeded, but must not: %s", output)
	case !errors.As(err, &exit):
		return err
	}
	return contains(output, texts...)
}

func contains(output string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(output, text) {
			return fmt.Errorf("the output lacks %q:\n%s", text, output)
		}
	}
	return nil
}

func quoteAll(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if strings.ContainsAny(arg, " {}\"$*'|&;<>()") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// indent sets the output of a command apart from the command.
func indent(text string) string {
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

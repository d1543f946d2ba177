package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/controlplane"
)

// root is that of the repository, for which the README is written.
const root = "../../../.."

// program is the command that starts this program.
const program = "go run ./examples/crontab/cmd/crontab"

// interrupt is what a terminal shows when the program is stopped.
const interrupt = "^C"

// TestTheReadmeOnARealAPIServer runs the commands of the README, and compares what they
// print. They build upon each other: after a failure the rest is not run.
func TestTheReadmeOnARealAPIServer(t *testing.T) {
	all := steps(t)
	cp := controlplane.ForTest(t)
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("PATH", filepath.Dir(cp.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stop func()
	for i, s := range all {
		switch {
		case s.command == program:
			stop = start(t)
		case s.command == interrupt:
			stop()
		case !t.Run(fmt.Sprintf("%02d %s", i+1, s.command), s.run):
			return
		}
	}
}

// step is a command of the README, and what that says it prints.
type step struct{ command, output string }

// steps returns what is in the blocks that begin with ```console.
func steps(t *testing.T) (all []step) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "examples/crontab/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(readme), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok || line == interrupt+"\n" {
				all = append(all, step{command: strings.TrimSpace(command)})
			} else if len(all) > 0 {
				all[len(all)-1].output += line
			}
		}
	}
	started, stopped := slices.Index(all, step{command: program}), slices.Index(all, step{command: interrupt})
	if started < 0 || stopped < started {
		t.Fatalf("of the %d commands of the README, %d starts the program and %d stops it", len(all), started+1, stopped+1)
	}
	return all
}

// reads may be repeated until they print what they should: the API server takes up a
// definition a moment after it has been written.
var reads = regexp.MustCompile(`^kubectl (get|wait|api-resources) [^|]*$`)

func (s step) run(t *testing.T) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", s.command)
		cmd.Dir = root
		got, err := cmd.CombinedOutput() // an error is part of what it prints
		diff := cmp.Diff(trimmed(s.output), trimmed(string(got)))
		if diff == "" {
			return
		}
		if !reads.MatchString(s.command) || time.Now().After(deadline) {
			t.Fatalf("(-README +kubectl), %v:\n%s", err, diff)
		}
	}
}

// trimmed returns the lines of a text, without the spaces at their ends.
func trimmed(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// start runs the program, on a port that is free, and returns what stops it.
func start(t *testing.T) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- run(ctx, []string{"--listen=" + free, "--url=https://" + free}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the program did not stop in order: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func TestTheDefinitionHasTheAddressOfTheProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples/crontab/config/crd/stable.example.com_crontabs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "url: https://" + address + "/convert\n"; !strings.Contains(string(text), want) {
		t.Errorf("the definition lacks %s", want)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	const want = `unexpected arguments: ["serve"]`
	if err := run(t.Context(), []string{"serve"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

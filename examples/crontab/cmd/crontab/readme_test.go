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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

// root is that of the repository, for which the README is written.
const root = "../../../.."

// The commands that start and stop the program.
const (
	program = "bin/crontab &"
	stops   = "kill %1; wait %1"
)

// TestReadme runs the commands of the README, and compares what they
// print. They build upon each other: after a failure the rest is not run.
func TestReadme(t *testing.T) {
	tier.VerifyOnly(t, "replays the README")
	commands := mdtest.Read(t, filepath.Join(root, "examples/crontab/README.md")).Commands()
	started, stopped := slices.Index(commands, mdtest.Command{Line: program}), slices.Index(commands, mdtest.Command{Line: stops})
	if started < 0 || stopped < started {
		t.Fatalf("of the %d commands of the README, %d starts the program and %d stops it", len(commands), started+1, stopped+1)
	}
	cp := controlplane.ForTest(t)
	cp.SkipIfOlder(t, "the README shows its words")
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("PATH", filepath.Dir(cp.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stop func()
	for i, c := range commands {
		switch i {
		case started:
			stop = start(t)
		case stopped:
			stop()
		default:
			if !t.Run(fmt.Sprintf("%02d %s", i+1, c.Line), func(t *testing.T) { prints(t, c) }) {
				return
			}
		}
	}
}

// reads may be repeated until they print what they should: the API server takes up a
// definition a moment after it has been written.
var reads = regexp.MustCompile(`^kubectl (get|wait|api-resources) [^|]*$`)

// revision is that of etcd, which differs from run to run.
var revision = regexp.MustCompile(`revision=[0-9]+`)

// prints runs a command, and compares what it prints.
func prints(t *testing.T, c mdtest.Command) {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", c.Line)
		cmd.Dir = root
		got, err := cmd.CombinedOutput() // an error is part of what it prints
		diff := cmp.Diff(trimmed(c.Output), trimmed(revision.ReplaceAllString(string(got), "revision=1234")))
		if diff == "" {
			return
		}
		if !reads.MatchString(c.Line) || time.Now().After(deadline) {
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

// start runs the program, on a port that is free, which the definition is told, and returns what
// stops it.
func start(t *testing.T) (stop func()) {
	t.Helper()
	port, err := controlplane.FreePort()
	expect.NoError(t, err)
	free := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	patch := `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/url","value":"https://` + free + `/convert"}]`
	if output, err := exec.CommandContext(t.Context(), "kubectl", "patch", "crd", "crontabs.stable.example.com", "--type=json", "-p", patch).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
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

// The definition has the address of the program.
func TestDefinition_AddressOfProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples/crontab/config/crd/stable.example.com_crontabs.yaml"))
	expect.NoError(t, err)
	if want := "url: https://" + address + "/convert\n"; !strings.Contains(string(text), want) {
		t.Errorf("the definition lacks %s", want)
	}
}

// Arguments are refused.
func TestRun_Arguments(t *testing.T) {
	const want = `unexpected arguments: ["serve"]`
	if err := run(t.Context(), []string{"serve"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

package show_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/test/expect"
)

func start(t *testing.T, script string) *show.Process {
	t.Helper()
	p, err := show.Start("it", filepath.Join(t.TempDir(), "log"), exec.Command("sh", "-c", script))
	expect.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

// hasSaid is ready when the process has printed that.
func hasSaid(p *show.Process, text string) func() error {
	return func() error {
		if !strings.Contains(p.Log(), text) {
			return errors.New("process is silent")
		}
		return nil
	}
}

// A process stops in order, or it is an error.
func TestProcess_Stop(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"it stops":             {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", ""},
		"with an exit code":    {"trap 'echo why; exit 3' TERM; echo ready; while :; do sleep 0.1; done", "it stopped with exit status 3:\nready\nwhy\n"},
		"by the signal itself": {"echo ready; exec sleep 60", "it stopped with signal: terminated:\nready\n"},
		"not at all":           {"trap '' TERM; echo ready; while :; do sleep 0.1; done", "it did not stop within 1s:\nready\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.script)
			expect.NoError(t, p.Await(t.Context(), hasSaid(p, "ready")))
			got := ""
			if err := p.Stop(time.Second); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A process that has stopped is not awaited.
func TestProcess_AwaitStopped(t *testing.T) {
	p := start(t, "echo no; exit 2")
	err := p.Await(t.Context(), func() error { return errors.New("process is silent") })
	if want := "it is not ready: process stopped\nno\n"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := p.Stop(time.Second); err == nil || !strings.HasPrefix(err.Error(), "it had stopped: exit status 2\n") {
		t.Errorf("got %v", err)
	}
}

// Eventually gives up at a permanent error, and when the time is up.
func TestEventually_GivesUp(t *testing.T) {
	never := errors.New("never")
	tries := 0
	if err := show.Eventually(t.Context(), time.Minute, func() error { tries++; return show.Permanent(never) }); !errors.Is(err, never) || tries != 1 {
		t.Errorf("got %v after %d tries", err, tries)
	}
	if err := show.Eventually(t.Context(), time.Millisecond, func() error { return never }); !errors.Is(err, never) || !strings.HasPrefix(err.Error(), "after 1ms still: ") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := show.Eventually(ctx, time.Minute, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("got %v", err)
	}
}

package show_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/test/expect"
)

// A shell reads what is quoted.
func TestQuote(t *testing.T) {
	want := map[string]string{
		"get": "get", "--as=system:serviceaccount:ns/x,y": "--as=system:serviceaccount:ns/x,y", "1.5@+%_": "1.5@+%_",
		"": "''", "two words": "'two words'", `{"a":[1]}`: `'{"a":[1]}'`, "it's": `'it'\''s'`, "'": `''\'''`,
		"$HOME `date` \\": "'$HOME `date` \\'", "*?[a]!#~^": "'*?[a]!#~^'", "a;b&c|d<e>f(g)": "'a;b&c|d<e>f(g)'",
		"line\nline\ttab": "'line\nline\ttab'", "×2": "'×2'",
	}
	for arg, want := range want {
		if diff := cmp.Diff(want, show.Quote([]string{arg})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		output, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '<%s>' "+show.Quote([]string{"before", arg, "after"})).Output()
		expect.NoError(t, err)
		if diff := cmp.Diff("<before><"+arg+"><after>", string(output)); diff != "" {
			t.Errorf("what the shell reads (-want +got):\n%s", diff)
		}
	}
}

// kubectl returns one that does what a script says.
func kubectl(t *testing.T, script string) show.Kubectl {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	expect.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return show.Kubectl{Path: path, Out: io.Discard}
}

// The command must fail by itself, and say why.
func TestKubectl_Fail(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"it fails":         {"echo forbidden; exit 1", ""},
		"with other words": {"echo unknown; exit 1", "the output lacks \"forbidden\":\nunknown\n"},
		"it succeeds":      {"echo forbidden", "kubectl get succeeded, but must not: forbidden\n"},
		"it is killed":     {"echo forbidden; kill -9 $$", "kubectl get: signal: killed: forbidden\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := kubectl(t, c.script).Fail(t.Context(), "", []string{"get"}, "forbidden"); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The end of the context is not the failure that is expected.
func TestKubectl_FailAfterContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := kubectl(t, "echo forbidden; exec sleep 60").Fail(ctx, "", []string{"get"}, "forbidden")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

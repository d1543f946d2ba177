package show

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// printed returns what a function prints.
func printed(t *testing.T, f func()) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stdout")
	file, err := os.Create(path)
	expect.NoError(t, err)
	defer file.Close()
	defer func(stdout *os.File) { os.Stdout = stdout }(os.Stdout)
	os.Stdout = file
	f()
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	return string(text)
}

// Steps build upon each other: those after a failure, or an interrupt, neither run nor count as failed.
func TestRun_Failure(t *testing.T) {
	step := func(err error) Step {
		return Step{"a step", func(context.Context) error { return err }}
	}
	got := printed(t, func() {
		if run(t.Context(), []Step{step(nil), step(errors.New("no toppings")), step(nil), step(nil)}) {
			t.Error("all steps passed")
		}
	})
	_, got, _ = strings.Cut(got, "▸ 2/4 ")
	if diff := cmp.Diff("a step\n✗ no toppings\n\ndemo: 4 steps, 1 passed, 1 failed\n", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The commands to type work for paths with spaces.
func TestLeave_Spaces(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	got := printed(t, func() { leave(ctx, emptyMenu{}, "/tmp dir/config", "/bin dir/kubectl") })
	if want := "\n  export KUBECONFIG='/tmp dir/config'\n  '/bin dir/kubectl' get pizzas -A\n"; !strings.Contains(got, want) {
		t.Errorf("it prints %q, which lacks %q", got, want)
	}
}

// emptyMenu is a walkthrough that leaves nothing to look at.
type emptyMenu struct{}

func (emptyMenu) Steps() []Step               { return nil }
func (emptyMenu) Leave(context.Context) error { return errors.New("no toppings") }
func (emptyMenu) Close() error                { return nil }

// A demo that is kept runs on, even if there is nothing to look at.
func TestLeave_EmptyMenu(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			leave(ctx, emptyMenu{}, "kubeconfig", "kubectl")
			close(ended)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it ended by itself")
		default:
		}
		interrupt()
		<-ended
	})
}

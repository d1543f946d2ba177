//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

func TestStop_LeavesNothingBehind(t *testing.T) {
	useFakes(t)
	cp, err := Start(t.Context())
	expect.NoError(t, err)
	all := remainsOf(cp)
	if diff := cmp.Diff(all, all.left()); diff != "" {
		t.Errorf("before Stop, something is missing (-want +got):\n%s", diff)
	}
	if cp.Version() != "v1.2.3-fake" || cp.Minor() != 2 {
		t.Errorf("it is %s, of minor release %d", cp.Version(), cp.Minor())
	}
	for name, want := range map[string]string{"etcd.log": "I am etcd\n", "kube-apiserver.log": "I am the API server\n"} {
		if logs, err := os.ReadFile(cp.file(name)); err != nil || !strings.Contains(string(logs), want) {
			t.Errorf("%s lacks %q: %v\n%s", name, want, err, logs)
		}
	}
	for range 2 {
		if err := cp.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if diff := cmp.Diff(remains{}, all.left()); diff != "" {
		t.Errorf("Stop left something behind (-want +got):\n%s", diff)
	}
}

// Nothing is left when the program ends without Stop.
func TestControlPlane_EndsWithoutStop(t *testing.T) {
	useFakes(t)
	for _, end := range []string{"kill", "panic", "exit"} {
		t.Run(end, func(t *testing.T) {
			all := runToItsEnd(t, end)
			expect.EventuallyTrue(t, "all gone", func() bool { return cmp.Equal(remains{}, all.left()) })
		})
	}
}

// Ctrl+C does not reach the processes.
func TestControlPlane_CtrlC(t *testing.T) {
	useFakes(t)
	cp := ForTest(t)
	for _, pid := range remainsOf(cp).PIDs {
		if group, err := syscall.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process %d is in group %d (%v), want its own", pid, group, err)
		}
	}
}

// Start tries another port when the first is taken.
func TestStart_PortIsTaken(t *testing.T) {
	useFakes(t)
	t.Setenv("TEST_APISERVER", "port taken once")
	cp := ForTest(t)
	if _, err := os.Stat(cp.file("second-try")); err != nil {
		t.Error("it was ready at the first try:", err)
	}
}

// The error of Start names the process and shows its log.
func TestStart_ProcessFails(t *testing.T) {
	useFakes(t)
	t.Setenv("TMPDIR", t.TempDir())
	for behaviour, wants := range map[string][]string{
		"broken":      {"kube-apiserver ended unexpectedly: exit status 3", "my flags are wrong"},
		"never ready": {"kube-apiserver is not ready", context.DeadlineExceeded.Error(), "still thinking"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Setenv("TEST_APISERVER", behaviour)
			// As long as it takes until etcd is ready and kube-apiserver has written its log.
			err := errors.New("not started")
			for limit := time.Second; limit < 2*time.Minute && !strings.Contains(err.Error(), wants[len(wants)-1]); limit *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err = Start(ctx)
				cancel()
				if err == nil {
					t.Fatal("it has started")
				}
			}
			expect.ErrorContains(t, err, wants...)
			if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*"); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// The path of a socket is short. The error names what to change.
func TestStart_LongTMPDIR(t *testing.T) {
	useFakes(t)
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	expect.NoError(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	_, err := Start(t.Context())
	expect.ErrorContains(t, err, "TMPDIR is "+long+", expected a short path", "invalid argument")
	if left, _ := filepath.Glob(long + "/*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestStop_ReportsDeadProcess(t *testing.T) {
	useFakes(t)
	cp, err := Start(t.Context())
	expect.NoError(t, err)
	all := remainsOf(cp)
	expect.NoError(t, cp.etcd.cmd.Process.Kill())
	<-cp.etcd.done
	expect.ErrorContains(t, cp.Stop(), "etcd ended unexpectedly: signal: killed")
	if diff := cmp.Diff(remains{}, all.left()); diff != "" {
		t.Errorf("Stop left something behind (-want +got):\n%s", diff)
	}
}

// The API server starts again at the same address.
func TestStartAPIServer_AfterStop(t *testing.T) {
	useFakes(t)
	cp, err := Start(t.Context())
	expect.NoError(t, err)
	defer cp.Stop()
	host, first := cp.Config().Host, cp.apiserver
	expect.NoError(t, errors.Join(cp.StopAPIServer(), cp.StartAPIServer(t.Context())))
	if first.exited() == nil || cp.apiserver.exited() != nil || cp.Config().Host != host {
		t.Errorf("the first server: %v, the second at %s: %v; want %s", first.exited(), cp.Config().Host, cp.apiserver.exited(), host)
	}
}

// A process that ignores SIGTERM is killed.
func TestStop_ProcessIgnoresSIGTERM(t *testing.T) {
	useFakes(t)
	t.Setenv("TEST_APISERVER", "stubborn")
	cp, err := Start(t.Context())
	expect.NoError(t, err)
	defer cp.Stop()
	if err := cp.apiserver.stop(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("signal: killed", cp.apiserver.cmd.ProcessState.String()); diff != "" {
		t.Errorf("its end (-want +got):\n%s", diff)
	}
}

func TestBinaries_Missing(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())

	t.Run("Start says how to get them", func(t *testing.T) {
		_, err := Start(t.Context())
		if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "make controlplane") {
			t.Errorf("Start returned %v", err)
		}
	})
	for require, want := range map[string]string{"": "skip", "1": "fatal"} {
		t.Run("ForTest ends with "+want, func(t *testing.T) {
			t.Setenv("CRDKIT_REQUIRE_CONTROLPLANE", require)
			r := &recorder{TB: t}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				ForTest(r)
			}()
			<-ended
			if diff := cmp.Diff([]string{"kube-apiserver missing"}, r.attributes); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(r.said, want+": ") || !strings.Contains(r.said, "make controlplane") {
				t.Errorf("ForTest said %q", r.said)
			}
		})
	}
}

// Outside the module there are no binaries.
func TestStart_OutsideTheModule(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Chdir(t.TempDir())
	if _, err := Start(t.Context()); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("Start returned %v", err)
	}
}

// Nested modules are inside the module.
func TestModuleRoot_Nested(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "hack", "tool")
	expect.NoError(t, os.MkdirAll(nested, 0o700))
	for dir, module := range map[string]string{root: modulePath, nested: modulePath + "/hack/tool"} {
		gomod := []byte("// A comment.\nmodule " + module + "\n\ngo 1.26\n")
		expect.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), gomod, 0o600))
	}
	t.Chdir(nested)
	got, err := moduleRoot()
	expect.NoError(t, err)
	if diff := cmp.Diff(root, got); diff != "" {
		t.Errorf("module root (-want +got):\n%s", diff)
	}
}

// recorder notes how a test ends, and its attributes.
type recorder struct {
	testing.TB
	said       string
	attributes []string
}

func (r *recorder) Attr(key, value string) { r.attributes = append(r.attributes, key+" "+value) }

func (r *recorder) Skip(args ...any)  { r.end("skip", args) }
func (r *recorder) Fatal(args ...any) { r.end("fatal", args) }
func (r *recorder) end(how string, args []any) {
	r.said = how + ": " + fmt.Sprint(args...)
	runtime.Goexit()
}

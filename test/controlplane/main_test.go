//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

// TestMain lets the test binary play other parts: a fake etcd and API server
// when it is called by their names, and a program that starts a control plane
// and comes to a bad end.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case etcdName:
		fakeEtcd()
	case apiserverName:
		fakeAPIServer()
	}
	if end := os.Getenv("TEST_END"); end != "" {
		startAndEnd(end)
	}
	os.Exit(m.Run())
}

// useFakes makes Start start the fakes, which are ready and gone within
// milliseconds. With them the tests of starting and stopping need no binaries.
func useFakes(t *testing.T) {
	self, err := os.Executable()
	expect.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{etcdName, apiserverName, kubectlName} {
		expect.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
}

func fakeEtcd() {
	fmt.Println("I am etcd")
	l, err := net.Listen("unix", strings.TrimPrefix(flagValue("listen-client-urls"), "unix://"))
	if err != nil {
		panic(err)
	}
	for {
		if _, err := l.Accept(); err != nil {
			panic(err)
		}
	}
}

// fakeAPIServer is ready at once, unless TEST_APISERVER has another idea.
func fakeAPIServer() {
	crt := flagValue("tls-cert-file")
	switch os.Getenv("TEST_APISERVER") {
	case "broken":
		fmt.Println("my flags are wrong")
		os.Exit(3)
	case "never ready":
		fmt.Println("still thinking")
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "port taken once":
		if os.Mkdir(filepath.Join(filepath.Dir(crt), "second-try"), 0o700) == nil {
			fmt.Println("bind: address already in use")
			os.Exit(1)
		}
	}
	fmt.Println("I am the API server")
	ok := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion":"v1.2.3-fake"}`)
		}
	})
	panic(http.ListenAndServeTLS("127.0.0.1:"+flagValue("secure-port"), crt, flagValue("tls-private-key-file"), ok))
}

func flagValue(name string) string {
	for _, arg := range os.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// remains is what a control plane could leave behind.
type remains struct {
	PIDs []int
	Dir  string
}

func remainsOf(cp *ControlPlane) remains {
	return remains{
		PIDs: []int{cp.etcd.cmd.Process.Pid, cp.apiserver.cmd.Process.Pid, cp.watchdog.cmd.Process.Pid},
		Dir:  cp.Dir(),
	}
}

// left returns the part of r that is still there.
func (r remains) left() remains {
	var left remains
	for _, pid := range r.PIDs {
		if alive(pid) {
			left.PIDs = append(left.PIDs, pid)
		}
	}
	if _, err := os.Stat(r.Dir); err == nil {
		left.Dir = r.Dir
	}
	return left
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	// In a container without an init, orphans are not reaped.
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return !bytes.Contains(stat, []byte(") Z "))
}

// startAndEnd is a program that starts a control plane, prints what could remain
// of it, and ends in the given way without a Stop.
func startAndEnd(end string) {
	cp, err := Start(context.Background())
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(remainsOf(cp)); err != nil {
		panic(err)
	}
	switch end {
	case "panic":
		panic("a bug")
	case "exit":
		os.Exit(1)
	}
	select {} // until killed
}

// runToItsEnd runs startAndEnd in a process of its own until it has ended, and
// returns what could remain.
func runToItsEnd(t *testing.T, end string) remains {
	t.Helper()
	self, err := os.Executable()
	expect.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "TEST_END="+end)
	out, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	var r remains
	expect.NoError(t, json.NewDecoder(out).Decode(&r))
	if end == "kill" {
		if left := r.left(); len(left.PIDs) != len(r.PIDs) || left.Dir == "" {
			t.Errorf("before the end there is only %+v of %+v", left, r)
		}
		expect.NoError(t, cmd.Process.Kill())
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended well")
	}
	return r
}

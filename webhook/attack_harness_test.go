package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeapi "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

// victimDir names the folder with the certificates of a server which this test binary
// is to be, in a process of its own: so the memory of the attackers is not counted, nor
// are their descriptors.
const victimDir = "CRDKIT_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := beVictim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Most of these tests wait for a connection to end rather than compute.
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = p.Value.Set("8")
	}
	os.Exit(m.Run())
}

// stats is what the victim says about itself.
type stats struct {
	Goroutines int
	Memory     uint64 // live objects and stacks
	Peak       uint64 // of those
	LogLines   int64
	Stacks     string // if more was asked for
}

type spoke struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	HostPort          string `json:"hostPort"`
}

type hub struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Address           string `json:"address"`
}

// fleet is of the size of ordinary kinds.
type fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template corev1.PodTemplateSpec `json:"template,omitzero"`
		Names    []string               `json:"names,omitempty"`
	} `json:"spec,omitzero"`
}

type hubFleet fleet

func (f *fleet) DeepCopyObject() runtimeapi.Object    { c := *f; return &c }
func (f *hubFleet) DeepCopyObject() runtimeapi.Object { c := *f; return &c }

func (s *spoke) DeepCopyObject() runtimeapi.Object { c := *s; return &c }
func (h *hub) DeepCopyObject() runtimeapi.Object   { c := *h; return &c }

// handlers are real ones.
func handlers() (http.Handler, error) {
	s := runtimeapi.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Server"}, &spoke{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Server"}, &hub{})
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in *spoke, out *hub) error { out.Address = in.HostPort; return nil },
		func(_ context.Context, in *hub, out *spoke) error { out.HostPort = in.Address; return nil })
	if err != nil {
		return nil, err
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Fleet"}, &fleet{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}, &hubFleet{})
	err = conversion.AddSpoke(reg,
		func(_ context.Context, in *fleet, out *hubFleet) error { out.Spec = in.Spec; return nil },
		func(_ context.Context, in *hubFleet, out *fleet) error { out.Spec = in.Spec; return nil })
	mux := http.NewServeMux()
	mux.Handle("/convert", conversion.NewHandler(reg))
	mux.Handle("/admit", admission.NewHandler(s, admission.Mutate(func(_ context.Context, h *hub) error { h.Address += "!"; return nil })))
	mux.Handle("/admit-fleet", admission.NewHandler(s,
		admission.Mutate(func(_ context.Context, f *hubFleet) error { f.Labels = map[string]string{"a": "b"}; return nil }),
		admission.Validate(func(context.Context, *hubFleet) (field.ErrorList, error) { return nil, nil })))
	mux.Handle("/admit-any", admission.NewHandler(s,
		admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
			u.SetLabels(map[string]string{"a": "b"})
			return nil
		})))
	mux.Handle("/healthz", webhook.Checks{})
	return mux, err
}

const question = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.com/v1","objects":[
	{"apiVersion":"example.com/v1alpha1","kind":"Server","metadata":{"name":"s"},"hostPort":"localhost:80"}]}}`

// beVictim serves until its standard input ends. Each line of that asks for stats; one
// that is not empty asks for the stacks too.
func beVictim(dir string) error {
	h, err := handlers()
	if err != nil {
		return err
	}
	certs, err := webhook.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return err
	}
	clients, err := webhook.ClientsOf(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var lines atomic.Int64
	logger := funcr.New(func(_, args string) {
		if strings.Contains(args, "of memory") { // at most one line a second
			return
		}
		if lines.Add(1) < 5 {
			fmt.Fprintln(os.Stderr, args)
		}
	}, funcr.Options{Verbosity: 1})
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- webhook.Serve(ctx, listener, h, certs, webhook.VerifyClients(clients),
			webhook.DrainTimeout(10*time.Second))
	}()
	var peak atomic.Uint64
	memory := func() uint64 {
		// Not HeapInuse: how much garbage there is depends on when the collector gets to run.
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(samples)
		now := samples[0].Value.Uint64() + samples[1].Value.Uint64()
		peak.Store(max(peak.Load(), now))
		return now
	}
	go func() {
		for range time.Tick(50 * time.Millisecond) {
			memory()
		}
	}()
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(listener.Addr().String()); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		runtime.GC()
		s := stats{Goroutines: runtime.NumGoroutine(), Memory: memory(), Peak: peak.Load(), LogLines: lines.Load()}
		if in.Text() != "" {
			buf := make([]byte, 1<<20)
			s.Stacks = string(buf[:runtime.Stack(buf, true)])
		}
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	cancel()
	return <-done
}

// victim is a server in another process.
type victim struct {
	*site
	clients *webhooktest.CA
	process *os.Process
	ask     func(more ...any) stats
	more    atomic.Int64 // what an attack should go on for
}

// newVictim starts a victim for a container with a memory limit in MiB. In a cgroup, it has the limit from
// there, and otherwise a GOMEMLIMIT of 90 %, as docs/running-in-production.md recommends: Go may exceed it
// for a short time.
func newVictim(t *testing.T, limit int, cgroup string) *victim {
	t.Helper()
	ca, clients := webhooktest.NewCA(t, "of the server"), webhooktest.NewCA(t, "of clients")
	dir := t.TempDir()
	cert := (*tls.Certificate)(serving(t, ca))
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Leaf.Raw}), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), clients.PEM(), 0o600))
	self, err := os.Executable()
	expect.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), victimDir+"="+dir, fmt.Sprintf("GOMEMLIMIT=%dKiB", limit<<10*9/10))
	if cgroup != "" {
		cmd = exec.Command("/bin/sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$1"`, cgroup, self)
		cmd.Env = append(os.Environ(), victimDir+"="+dir, "GOMEMLIMIT=off")
	}
	var said strings.Builder
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	expect.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", said.String())
		}
	})
	in := json.NewDecoder(stdout)
	var addr string
	expect.NoError(t, in.Decode(&addr))
	var mu sync.Mutex
	return &victim{site: &site{ca: ca, addr: addr}, clients: clients, process: cmd.Process, ask: func(more ...any) stats {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintln(stdin, more...)
		expect.NoError(t, err)
		var s stats
		expect.NoError(t, in.Decode(&s))
		return s
	}}
}

// goesOnUntil has an attack go on until the returned function is called, which tells that the attack has had its effect.
func (v *victim) goesOnUntil() func() {
	v.more.Add(1)
	return sync.OnceFunc(func() { v.more.Add(-1) })
}

// attack lets an attacker loose on a server, for a while. Meanwhile, well-behaved clients must
// get their answers, on kept connections and on new ones; what is refused for want of memory
// they try again, as the API server does. The server's memory must stay below a
// bound, and its log empty. Afterwards, nothing of the attack may be left.
func attack(t *testing.T, memory uint64, attacker attacker) {
	t.Helper()
	t.Parallel()
	v := newVictim(t, 256, "")
	ask := func(client *http.Client) time.Duration {
		began := time.Now()
		code, answer, err := post(client, v.url()+"/convert", []byte(question))
		for try := 0; code == http.StatusServiceUnavailable && try < 10; try++ {
			time.Sleep(time.Second)
			code, answer, err = post(client, v.url()+"/convert", []byte(question))
		}
		if err != nil || code != 200 || !strings.Contains(answer, `"address":"localhost:80"`) {
			t.Errorf("a well-behaved client got %d %s, %v", code, answer, err)
		}
		return time.Since(began)
	}
	wellBehaved := func(http2 bool) *http.Client {
		client := v.client(t, http2)
		client.Timeout = time.Minute // longer than any machine is busy, and shorter than forever
		return client
	}
	kept, kept2 := wellBehaved(false), wellBehaved(true)
	ask(kept)
	before := v.ask()

	until := make(chan struct{})
	var attackers, clients sync.WaitGroup
	attackers.Go(func() { attacker(t, v, until) })
	var slowest [3]time.Duration
	var asked [3]atomic.Int64
	for i, client := range []func() *http.Client{
		func() *http.Client { return kept },
		func() *http.Client { return kept2 },
		func() *http.Client {
			client := wellBehaved(false)
			client.Transport.(*http.Transport).DisableKeepAlives = true
			return client
		},
	} {
		clients.Go(func() {
			for !t.Failed() {
				select {
				case <-until:
					return
				case <-time.After(20 * time.Millisecond):
				}
				slowest[i] = max(slowest[i], ask(client()))
				asked[i].Add(1)
			}
		})
	}
	time.Sleep(tier.Pick(300*time.Millisecond, 1500*time.Millisecond))
	goesOn := func() bool {
		return v.more.Load() > 0 || asked[0].Load() == 0 || asked[1].Load() == 0 || asked[2].Load() == 0
	}
	for end := time.Now().Add(2 * time.Minute); goesOn() && !t.Failed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("after two minutes, the attack has had no effect, or a client has no answer")
		}
	}
	during := v.ask()
	close(until)
	clients.Wait()
	attackers.Wait()
	t.Logf("asked %v times, slowest answers %v; %d goroutines, then %d; %d MiB, then %d, at most %d; %d lines logged",
		[]int64{asked[0].Load(), asked[1].Load(), asked[2].Load()}, slowest, before.Goroutines, during.Goroutines, before.Memory>>20, during.Memory>>20, during.Peak>>20, during.LogLines)
	if during.Peak > memory {
		t.Errorf("the server needed %d MiB", during.Peak>>20)
	}
	kept.CloseIdleConnections()
	kept2.CloseIdleConnections()
	var after stats
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if after = v.ask(); after.Goroutines <= before.Goroutines {
			break
		}
		if time.Now().After(end) {
			t.Errorf("%d goroutines are left, of %d before:\n%s", after.Goroutines, before.Goroutines, v.ask("stacks").Stacks)
			break
		}
	}
	if after.LogLines > 0 {
		t.Errorf("%d lines were logged", after.LogLines)
	}
}

// crowd runs n attackers, each of which retries without a pause. They are fewer where
// they are slow: the machine is shared with the victim.
func crowd(n int, until <-chan struct{}, try func(i int)) {
	var all sync.WaitGroup
	for i := range max(n/slowness, 2) {
		all.Go(func() {
			for {
				select {
				case <-until:
					return
				default:
					try(i)
				}
			}
		})
	}
	all.Wait()
}

// hold waits until the end of the attack or of a connection, and closes that.
func hold(conn net.Conn, until <-chan struct{}) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		buf := make([]byte, 4096)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	}()
	select {
	case <-until:
	case <-gone:
	}
	closeHard(conn)
	<-gone
}

// closeHard closes a connection without a farewell, and drops what the kernel has not sent: the server would still work
// through megabytes of it.
func closeHard(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// tryDial is dial for attackers, who expect failures.
func (v *victim) tryDial(protos ...string) (*tls.Conn, error) {
	raw, err := net.DialTimeout("tcp", v.addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	config := v.config(protos...)
	config.CurvePreferences = []tls.CurveID{tls.X25519} // cheaper for the attacker
	conn := tls.Client(raw, config)
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := conn.Handshake(); err != nil {
		_ = raw.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// tick waits, and reports whether the attack goes on.
func tick(d time.Duration, until <-chan struct{}) bool {
	select {
	case <-until:
		return false
	case <-time.After(d):
		return true
	}
}

package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// pair is a serving certificate with its CA.
type pair struct{ chain, key, ca []byte }

func newPair(t testing.TB) pair {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, ca := pem.Decode(chain)
	return pair{chain, key, ca}
}

func (p pair) leaf(t testing.TB) string {
	t.Helper()
	block, _ := pem.Decode(p.chain)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.String()
}

// volume is a folder in which Kubernetes keeps a Secret: the files are links
// into a folder that is itself a link, which is swapped.
type volume struct {
	dir string
	n   int
}

func (v *volume) swap(t testing.TB, p pair) {
	t.Helper()
	v.n++
	data := filepath.Join(v.dir, fmt.Sprintf("..data_%d", v.n))
	check(t, os.Mkdir(data, 0o755))
	check(t, os.WriteFile(filepath.Join(data, "tls.crt"), p.chain, 0o644))
	check(t, os.WriteFile(filepath.Join(data, "tls.key"), p.key, 0o600))
	check(t, os.Symlink(filepath.Base(data), filepath.Join(v.dir, "..data_tmp")))
	check(t, os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
	if v.n == 1 {
		check(t, os.Symlink("..data/tls.crt", v.cert()))
		check(t, os.Symlink("..data/tls.key", v.key()))
	}
}

func (v *volume) cert() string { return filepath.Join(v.dir, "tls.crt") }
func (v *volume) key() string  { return filepath.Join(v.dir, "tls.key") }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A renewed certificate is served within a second.
func TestFiles_RenewedCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volume{dir: t.TempDir()}
		first, second := newPair(t), newPair(t)
		v.swap(t, first)
		files, err := webhook.Files(v.cert(), v.key())
		check(t, err)
		served := func() string {
			c, err := files.GetCertificate(nil)
			check(t, err)
			return c.Leaf.SerialNumber.String()
		}
		if got := served(); got != first.leaf(t) {
			t.Errorf("got %s at first", got)
		}
		v.swap(t, second)
		time.Sleep(time.Second)
		if got := served(); got != second.leaf(t) {
			t.Errorf("got %s after the swap, want %s", got, second.leaf(t))
		}
		// A chain without its root has the same leaf, and is another chain.
		block, _ := pem.Decode(second.chain)
		v.swap(t, pair{chain: pem.EncodeToMemory(block), key: second.key})
		time.Sleep(time.Second)
		c, err := files.GetCertificate(nil)
		check(t, err)
		if len(c.Certificate) != 1 {
			t.Errorf("the chain still has %d certificates", len(c.Certificate))
		}
	})
}

// A broken file keeps the old certificate, and is reported.
func TestFiles_Broken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volume{dir: t.TempDir()}
		good, other := newPair(t), newPair(t)
		v.swap(t, good)
		files, err := webhook.Files(v.cert(), v.key())
		check(t, err)
		check(t, files.Check(nil))
		for name, broken := range map[string]pair{
			"no PEM":         {chain: []byte("x"), key: good.key},
			"the wrong key":  {chain: good.chain, key: other.key},
			"an empty chain": {key: good.key},
		} {
			v.swap(t, broken)
			time.Sleep(time.Second)
			c, err := files.GetCertificate(nil)
			check(t, err)
			if got := c.Leaf.SerialNumber.String(); got != good.leaf(t) {
				t.Errorf("%s: got %s", name, got)
			}
			if err := files.Check(nil); err == nil || !strings.Contains(err.Error(), v.cert()) {
				t.Errorf("%s: the check says %v", name, err)
			}
		}
		v.swap(t, good)
		check(t, files.Check(nil))
		check(t, os.Remove(v.key()))
		if err := files.Check(nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without the key, the check says %v", err)
		}
	})
}

// An expired certificate is reported.
func TestFiles_ExpiredCertificate(t *testing.T) {
	v := &volume{dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		v.swap(t, newPair(t))
		files, err := webhook.Files(v.cert(), v.key())
		check(t, err)
		time.Sleep(2 * 365 * 24 * time.Hour)
		if err := files.Check(nil); err == nil || !strings.Contains(err.Error(), "is valid from") {
			t.Errorf("the check says %v", err)
		}
	})
}

// Missing files are an error.
func TestFiles_Missing(t *testing.T) {
	if _, err := webhook.Files("missing.crt", "missing.key"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// serve serves the handler and returns its URL, a client that trusts it, and a
// function that ends it and returns what Serve returned.
func serve(t *testing.T, h http.Handler, opts ...webhook.Option) (url string, client *http.Client, stop func() error) {
	t.Helper()
	p := newPair(t)
	v := &volume{dir: t.TempDir()}
	v.swap(t, p)
	certs, err := webhook.Files(v.cert(), v.key())
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- webhook.Serve(ctx, listener, h, certs, opts...) }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + listener.Addr().String(), &http.Client{Transport: transport}, func() error { cancel(); return <-done }
}

func TestServe_SpeaksTLS13AndHTTP2(t *testing.T) {
	t.Parallel()
	url, client, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %x", r.Proto, r.TLS.Version)
	}))
	resp, err := client.Get(url)
	check(t, err)
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	if diff := cmp.Diff("HTTP/2.0 304", string(body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	old := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	old.MaxVersion = tls.VersionTLS12
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), old); err == nil {
		conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
	check(t, stop())
}

// Requests in flight are finished.
func TestDrain_RequestsInFlight(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	url, client, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-goOn
		if err := r.Context().Err(); err != nil {
			t.Errorf("the request was cancelled: %v", err)
		}
		fmt.Fprint(w, "done")
	}))
	got := make(chan string, 1)
	go func() {
		resp, err := client.Get(url)
		if err != nil {
			got <- err.Error()
			return
		}
		body, err := io.ReadAll(resp.Body)
		got <- fmt.Sprint(string(body), err)
	}()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	// Once no new requests are accepted, those in flight may take their time.
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-stopped:
		t.Errorf("Serve returned %v with a request in flight", err)
	default:
	}
	close(goOn)
	if answer := <-got; answer != "done<nil>" {
		t.Errorf("the request in flight got %s", answer)
	}
	check(t, <-stopped)
}

// A request that outlasts the drain is cut off.
func TestDrainTimeout_CutsOff(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	url, client, stop := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	}), webhook.DrainTimeout(10*time.Millisecond))
	go func() {
		if resp, err := client.Get(url); err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still in flight after 10ms") {
		t.Errorf("got %v", err)
	}
	<-ended
}

// Serve reports a listener that fails.
func TestServe_ListenerFails(t *testing.T) {
	v := &volume{dir: t.TempDir()}
	v.swap(t, newPair(t))
	certs, err := webhook.Files(v.cert(), v.key())
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, listener.Close())
	if err := webhook.Serve(t.Context(), listener, http.NotFoundHandler(), certs); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Checks answer as the API server does.
func TestChecks_AnswerAsAPIServer(t *testing.T) {
	fine := func(*http.Request) error { return nil }
	broken := func(*http.Request) error { return errors.New("out of flour") }
	for name, c := range map[string]struct {
		checks webhook.Checks
		path   string
		code   int
		body   string
	}{
		"none":           {nil, "/healthz", 200, "ok"},
		"all pass":       {webhook.Checks{"b": fine, "a": fine}, "/readyz", 200, "ok"},
		"verbose":        {webhook.Checks{"b": fine, "a": fine}, "/readyz?verbose", 200, "[+]a ok\n[+]b ok\n"},
		"one that fails": {webhook.Checks{"b": fine, "a": broken}, "/readyz", 500, "[-]a failed: out of flour\n[+]b ok\n"},
	} {
		w := httptest.NewRecorder()
		c.checks.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if diff := cmp.Diff(fmt.Sprintln(c.code, c.body), fmt.Sprintln(w.Code, w.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

// pair is a serving certificate.
type pair struct{ chain, key []byte }

func newPair(t testing.TB) pair {
	t.Helper()
	_, chain, key := webhooktest.SelfSigned(t, "127.0.0.1")
	return pair{chain, key}
}

func (p pair) leaf(t testing.TB) string {
	t.Helper()
	block, _ := pem.Decode(p.chain)
	leaf, err := x509.ParseCertificate(block.Bytes)
	expect.NoError(t, err)
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
	expect.NoError(t, os.Mkdir(data, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(data, "tls.crt"), p.chain, 0o644))
	expect.NoError(t, os.WriteFile(filepath.Join(data, "tls.key"), p.key, 0o600))
	expect.NoError(t, os.Symlink(filepath.Base(data), filepath.Join(v.dir, "..data_tmp")))
	expect.NoError(t, os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
	if v.n == 1 {
		expect.NoError(t, os.Symlink("..data/tls.crt", v.cert()))
		expect.NoError(t, os.Symlink("..data/tls.key", v.key()))
	}
}

func (v *volume) cert() string { return filepath.Join(v.dir, "tls.crt") }
func (v *volume) key() string  { return filepath.Join(v.dir, "tls.key") }

// A renewed certificate is served within a second.
func TestFiles_RenewedCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volume{dir: t.TempDir()}
		first, second := newPair(t), newPair(t)
		v.swap(t, first)
		files, err := webhook.Files(v.cert(), v.key())
		expect.NoError(t, err)
		served := func() string {
			c, err := files.GetCertificate(nil)
			expect.NoError(t, err)
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
		expect.NoError(t, err)
		if len(c.Certificate) != 1 {
			t.Errorf("the chain still has %d certificates", len(c.Certificate))
		}
	})
}

// A broken file keeps the old certificate, and is reported.
func TestFiles_Broken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volume{dir: t.TempDir()}
		if _, err := webhook.Files(v.cert(), v.key()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("missing files: got %v", err)
		}
		good, other := newPair(t), newPair(t)
		v.swap(t, good)
		files, err := webhook.Files(v.cert(), v.key())
		expect.NoError(t, err)
		expect.NoError(t, files.Ready(nil))
		for name, broken := range map[string]pair{
			"no PEM":            {chain: []byte("x"), key: good.key},
			"the wrong key":     {chain: good.chain, key: other.key},
			"an empty chain":    {key: good.key},
			"a chain cut off":   {chain: good.chain[:len(good.chain)-50], key: good.key},
			"a broken last one": {chain: slices.Concat(good.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})), key: good.key},
		} {
			v.swap(t, broken)
			time.Sleep(time.Second)
			c, err := files.GetCertificate(nil)
			expect.NoError(t, err)
			if got := c.Leaf.SerialNumber.String(); got != good.leaf(t) {
				t.Errorf("%s: got %s", name, got)
			}
			if err := files.Ready(nil); err == nil || !strings.Contains(err.Error(), v.cert()) {
				t.Errorf("%s: the check says %v", name, err)
			}
		}
		v.swap(t, good)
		expect.NoError(t, files.Ready(nil))
		expect.NoError(t, os.Remove(v.key()))
		if err := files.Ready(nil); !errors.Is(err, os.ErrNotExist) {
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
		expect.NoError(t, err)
		time.Sleep(2 * 365 * 24 * time.Hour)
		expect.ErrorContains(t, files.Ready(nil), "is valid from")
	})
}

func TestServe_SpeaksTLS13AndHTTP2(t *testing.T) {
	t.Parallel()
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %x", r.Proto, r.TLS.Version)
	}))
	if diff := cmp.Diff("200 HTTP/2.0 304\n", mustPost(t, s.client(t, true), s.url(), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	old := s.config()
	old.MaxVersion = tls.VersionTLS12
	if conn, err := tls.Dial("tcp", s.addr, old); err == nil {
		conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
	s.stop()
	expect.NoError(t, <-s.done)
}

// Requests in flight are finished.
func TestDrain_RequestsInFlight(t *testing.T) {
	s, answer := inFlight(t, t.Context(), true, func(r *http.Request) {
		if err := r.Context().Err(); err != nil {
			t.Errorf("the request was cancelled: %v", err)
		}
	})
	s.stop()
	// Once no new requests are accepted, those in flight may take their time.
	untilClosed(t, s)
	select {
	case err := <-s.done:
		t.Errorf("Serve returned %v with a request in flight", err)
	default:
	}
	if got := answer(); got != "200 done\n" {
		t.Errorf("the request in flight got %s", got)
	}
	expect.NoError(t, <-s.done)
}

// A request that outlasts the drain is cut off.
func TestDrainTimeout_CutsOff(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	}), webhook.DrainTimeout(10*time.Millisecond))
	client := s.client(t, true)
	go func() { _, _, _ = post(client, s.url(), nil) }()
	<-started
	s.stop()
	if err := <-s.done; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still in flight after 10ms") {
		t.Errorf("got %v", err)
	}
	<-ended
}

// Serve reports a listener that fails.
func TestServe_ListenerFails(t *testing.T) {
	p := newPair(t)
	certs := webhooktest.Files(t, p.chain, p.key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	expect.NoError(t, listener.Close())
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

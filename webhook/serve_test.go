package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

// pipes is a listener in memory, for tests in which time does not pass by itself.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// connectInMemory serves a handler in the bubble of a test, and returns the connection of a client without its handshake,
// and a function that ends both.
func connectInMemory(t *testing.T, ca *webhooktest.CA, h http.Handler) (client net.Conn, end func()) {
	t.Helper()
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done, certs := make(chan error), serving(t, ca)
	go func() { done <- webhook.Serve(ctx, listener, h, certs) }()
	client, server := net.Pipe()
	listener.conns <- server
	return client, func() {
		client.Close()
		cancel()
		expect.NoError(t, <-done)
	}
}

// handshake returns a connection on which a client has shaken hands.
func handshake(t *testing.T, ca *webhooktest.CA, client net.Conn) net.Conn {
	t.Helper()
	conn := tls.Client(client, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
	expect.NoError(t, conn.Handshake())
	return conn
}

func TestServe_ClientTimeouts(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
	for name, c := range map[string]struct {
		send string // and one byte a second after it
		raw  bool   // no handshake
		idle bool   // no byte after it
		want time.Duration
	}{
		"for the handshake":          {raw: true, idle: true, want: 2 * time.Minute},
		"for the header":             {send: "POST / HTTP/1.1\r\nX: ", want: 2 * time.Minute},
		"for the body":               {send: head + "\r\n", want: 2 * time.Minute},
		"between requests":           {send: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", idle: true, want: 3 * time.Minute},
		"for the header of the next": {send: "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nX: ", want: 2 * time.Minute},
		// Five seconds of it for the farewell of TLS, which is not read either.
		"until it has read its answer":  {send: "GET /large HTTP/1.1\r\nHost: x\r\n\r\n", idle: true, want: 2*time.Minute + 5*time.Second},
		"before it has sent any header": {idle: true, want: 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			ca := webhooktest.NewCA(t, "x")
			ended := make(chan time.Time, 1) // the handler of /large
			conn, end := connectInMemory(t, ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/large" {
					for {
						if _, err := w.Write(make([]byte, 1<<20)); err != nil {
							ended <- time.Now()
							return
						}
					}
				}
			}))
			if !c.raw {
				conn = handshake(t, ca, conn)
			}
			began := time.Now()
			closed := make(chan time.Time, 1)
			if strings.Contains(c.send, "/large") {
				go func() { _, _ = conn.Write([]byte(c.send)) }()
				closed = ended
				go func() { _, _ = conn.Read(make([]byte, 1)) }()
			} else {
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					closed <- time.Now()
				}()
				if c.send != "" {
					_, err := conn.Write([]byte(c.send))
					expect.NoError(t, err)
				}
			}
			go func() {
				for !c.idle {
					time.Sleep(time.Second)
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			if diff := cmp.Diff(c.want, (<-closed).Sub(began).Round(time.Second)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			end()
			time.Sleep(time.Second) // the writer notices
		})
	}
}

// A client may use a connection for the first time long after the handshake: if another one
// became idle meanwhile, it keeps the new one.
func TestServe_UnusedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := webhooktest.NewCA(t, "x")
		client, end := connectInMemory(t, ca, echo)
		conn := handshake(t, ca, client)
		time.Sleep(90 * time.Second) // as long as the API server keeps it
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		expect.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		expect.NoError(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("got %s", resp.Status)
		}
		end()
	})
}

// A panic of a handler is logged as an error.
func TestErrorLog_HandlerPanic(t *testing.T) {
	ctx, lines := logcheck.Record(t.Context())
	s := startIn(t, ctx, webhooktest.NewCA(t, "x"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("no flour")
	}))
	if _, _, err := post(s.client(t, false), s.url(), nil); err == nil {
		t.Error("there was an answer")
	}
	expect.EventuallyTrue(t, "the panic is logged", func() bool { return len(lines()) > 0 })
	if got := lines(); !strings.Contains(got[0], "no flour") || !strings.Contains(got[0], `"error"`) {
		t.Errorf("logged %s", got)
	}
}

// Strings of clients and handlers are escaped in the log, and bounded.
func TestErrorLog_Escapes(t *testing.T) {
	logger, entries := logcheck.New(t)
	s := startIn(t, klog.NewContext(t.Context(), logger), webhooktest.NewCA(t, "x"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(logcheck.Bad() + "\ngoroutine 7 [running]:\n\x1b")
	}))
	_, _ = tls.Dial("tcp", s.addr, s.config("a\n\x1b[31mb"))
	for _, http2 := range []bool{false, true} {
		_, _, _ = post(s.client(t, http2), s.url(), nil)
	}
	expect.EventuallyTrue(t, "all is logged", func() bool { return entries() == 3 })
}

func TestErrorLog_ClientsCannotFakeAPanic(t *testing.T) {
	ctx, lines := logcheck.Record(t.Context())
	s := startIn(t, ctx, webhooktest.NewCA(t, "x"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("no flour")
	}))
	for range 150 {
		if _, err := tls.Dial("tcp", s.addr, s.config("http: panic serving ")); err == nil {
			t.Fatal("a protocol of that name is spoken")
		}
	}
	for _, http2 := range []bool{false, true} {
		_, _, _ = post(s.client(t, http2), s.url(), nil)
	}
	expect.EventuallyTrue(t, "both panics are logged", func() bool { return strings.Count(strings.Join(lines(), "\n"), `"error"="http`) == 2 })
	if n := len(lines()); n != 2 {
		t.Errorf("%d lines were logged", n)
	}
}

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

// protocols runs a test for HTTP/1.1 and HTTP/2.
func protocols(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Run("HTTP1", func(t *testing.T) { test(t, false) })
	t.Run("HTTP2", func(t *testing.T) { test(t, true) })
}

func TestDrain_LosesNoRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delay  time.Duration
		notice time.Duration // after which new connections go to the second server
	}{
		"with a delay":    {delay: 800 * time.Millisecond, notice: 200 * time.Millisecond},
		"without a delay": {},
	} {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(t *testing.T, http2 bool) {
				ca := webhooktest.NewCA(t, "of both")
				var served [2]atomic.Int64
				var sites [2]*site
				for i := range sites {
					sites[i] = startIn(t, t.Context(), ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						served[i].Add(1)
						time.Sleep(time.Millisecond)
						_, _ = io.Copy(w, r.Body)
					}), webhook.ShutdownDelay(c.delay))
				}
				var second atomic.Bool
				client := sites[0].client(t, http2)
				client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
					to := sites[0]
					if second.Load() {
						to = sites[1]
					}
					return (&net.Dialer{}).DialContext(ctx, network, to.addr)
				}
				var clients sync.WaitGroup
				var requests atomic.Int64
				until := make(chan struct{})
				for range 12 {
					clients.Go(func() {
						for {
							select {
							case <-until:
								return
							default:
							}
							requests.Add(1)
							want := strings.Repeat("x", 1000)
							if code, got, err := post(client, "https://service.example", []byte(want)); err != nil || code != 200 || got != want {
								t.Errorf("a request failed: %d %.100s %v", code, got, err)
							}
						}
					})
				}
				expect.EventuallyTrue(t, "the first server is under load", func() bool { return served[0].Load() > 100 })
				if c.notice == 0 {
					second.Store(true)
				} else {
					time.AfterFunc(c.notice, func() { second.Store(true) })
				}
				sites[0].stop()
				expect.NoError(t, <-sites[0].done)
				before := served[1].Load()
				expect.EventuallyTrue(t, "the second server is under load", func() bool { return served[1].Load() > before+100 })
				close(until)
				clients.Wait()
				if got, want := served[0].Load()+served[1].Load(), requests.Load(); got != want {
					t.Errorf("%d requests were served %d times", want, got)
				}
			})
		})
	}
}

// untilClosed waits until the listener of a site is closed.
func untilClosed(t *testing.T, s *site) {
	t.Helper()
	expect.EventuallyTrue(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

func TestDrain_AnswersSendClientsAway(t *testing.T) {
	t.Parallel()
	entered, goOn := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/", echo)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-goOn
	})
	mux.Handle("/readyz", webhook.Checks{"shutdown": webhook.ShutdownCheck})
	s := start(t, mux, webhook.ShutdownDelay(5*time.Second), webhook.DrainTimeout(10*time.Second))
	client := s.client(t, false)
	ask := func(path string) string {
		resp, err := client.Post(s.url()+path, "", strings.NewReader("x"))
		expect.NoError(t, err)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", resp.Close)
	}
	var got []string
	got = append(got, ask("/"), ask("/readyz"))
	slow := make(chan string)
	go func() { slow <- ask("/slow") }() // which began before, and answers after
	<-entered
	s.stop()
	got = append(got, ask("/"), ask("/readyz"))
	close(goOn)
	got = append(got, <-slow)
	if diff := cmp.Diff([]string{"200 false", "200 false", "200 true", "500 true", "200 true"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	select {
	case err := <-s.done:
		t.Errorf("Serve returned %v within the delay", err)
	default:
	}
}

// An answer that has begun before the server stops cannot send the client away, which may
// send its next request as soon as that answer ends.
func TestDrain_AnswerBegunBeforeTheStop(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/first" {
			<-goOn
		}
	}))
	client := s.client(t, false)
	resp, err := client.Get(s.url() + "/first")
	expect.NoError(t, err)
	defer resp.Body.Close()
	s.stop()
	untilClosed(t, s)
	time.Sleep(100 * time.Millisecond)
	close(goOn)
	_, err = io.Copy(io.Discard, resp.Body)
	expect.NoError(t, err)
	mustPost(t, client, s.url(), "x") // on the same connection: there is no listener
	expect.NoError(t, <-s.done)
}

// An idle connection is answered once more.
func TestDrain_IdleConnection(t *testing.T) {
	t.Parallel()
	s := start(t, echo)
	client := s.client(t, false)
	mustPost(t, client, s.url(), "x")
	s.stop()
	untilClosed(t, s)
	time.Sleep(time.Second) // as a client that is not in a hurry
	resp, err := client.Post(s.url(), "", strings.NewReader("x"))
	expect.NoError(t, err)
	resp.Body.Close()
	if !resp.Close {
		t.Error("the answer does not lead away from the connection")
	}
	expect.NoError(t, <-s.done)
}

// HTTP/2 connections are led away too.
func TestDrain_HTTP2(t *testing.T) {
	t.Parallel()
	s := start(t, echo, webhook.ShutdownDelay(time.Second))
	client := s.client(t, true)
	var conns atomic.Int64
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conns.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	for range 3 {
		mustPost(t, client, s.url(), "x")
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections before the end", n)
	}
	s.stop()
	mustPost(t, client, s.url(), "x") // its answer brings the GOAWAY
	expect.EventuallyTrue(t, "another connection is opened", func() bool {
		mustPost(t, client, s.url(), "x")
		return conns.Load() > 1
	})
}

// ShutdownCheck passes outside of Serve.
func TestDraining_OutsideOfServe(t *testing.T) {
	expect.NoError(t, webhook.ShutdownCheck(httptest.NewRequest("GET", "/readyz", nil)))
}

// inFlight starts a server with a request in flight. The function lets its handler go on, which calls atEnd and answers
// with "done", and returns the answer.
func inFlight(t *testing.T, ctx context.Context, http2 bool, atEnd func(*http.Request), opts ...webhook.Option) (s *site, answer func() string) {
	t.Helper()
	entered, goOn, answered := make(chan struct{}), make(chan struct{}), make(chan string)
	s = startIn(t, ctx, webhooktest.NewCA(t, "x"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-goOn
		atEnd(r)
		fmt.Fprint(w, "done")
	}), opts...)
	client := s.client(t, http2)
	go func() { answered <- mustPost(t, client, s.url(), "x") }()
	<-entered
	return s, func() string {
		close(goOn)
		return <-answered
	}
}

type valueKey struct{}

// A function that runs beside the server outlives the last request.
func TestRunAlongside_OutlivesLastRequest(t *testing.T) {
	running := make(chan context.Context, 1)
	var returned atomic.Bool
	ctx := context.WithValue(t.Context(), valueKey{}, "of the context")
	s, answer := inFlight(t, ctx, false, func(*http.Request) {}, webhook.RunAlongside(func(ctx context.Context) error {
		running <- ctx
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		returned.Store(true)
		return ctx.Err() // as many do: it is not an error
	}), webhook.RunAlongside(func(context.Context) error { return nil }))
	beside := <-running
	if got := beside.Value(valueKey{}); got != "of the context" {
		t.Errorf("the value is %v", got)
	}
	s.stop()
	time.Sleep(100 * time.Millisecond)
	if err := beside.Err(); err != nil {
		t.Errorf("it was stopped with a request in flight: %v", err)
	}
	if got := answer(); got != "200 done\n" {
		t.Errorf("got %s", got)
	}
	expect.NoError(t, <-s.done)
	if !returned.Load() {
		t.Error("Serve did not wait for it")
	}
}

// A function that runs beside the server stops it by an error.
func TestRunAlongside_Error(t *testing.T) {
	fail := make(chan struct{})
	burnt := errors.New("the pizza is burnt")
	draining := false
	s, answer := inFlight(t, t.Context(), false, func(r *http.Request) { draining = webhook.ShutdownCheck(r) != nil },
		webhook.ShutdownDelay(time.Hour), webhook.RunAlongside(func(context.Context) error {
			<-fail
			return burnt
		}))
	close(fail)
	untilClosed(t, s)
	if got := answer(); got != "200 done\n" {
		t.Errorf("the request in flight got %s", got)
	}
	if err := <-s.done; !errors.Is(err, burnt) {
		t.Errorf("Serve returned %v", err)
	}
	if !draining {
		t.Error("readiness did not go")
	}
}

// An error during the delay ends it.
func TestShutdownDelay_Error(t *testing.T) {
	fail := make(chan struct{})
	burnt := errors.New("the pizza is burnt")
	s := start(t, echo, webhook.ShutdownDelay(time.Hour), webhook.RunAlongside(func(context.Context) error {
		<-fail
		return burnt
	}))
	s.stop()
	close(fail)
	if err := <-s.done; !errors.Is(err, burnt) {
		t.Errorf("Serve returned %v", err)
	}
}

// Idle connections are not an error.
func TestDrainTimeout_IdleConnections(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, s *site){
		"fresh": func(t *testing.T, s *site) { s.dial(t, "http/1.1") },
		"idle, of both protocols": func(t *testing.T, s *site) {
			for _, http2 := range []bool{false, true} {
				mustPost(t, s.client(t, http2), s.url(), "x")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, echo, webhook.DrainTimeout(time.Second))
			connect(t, s)
			s.stop()
			expect.NoError(t, <-s.done)
		})
	}
}

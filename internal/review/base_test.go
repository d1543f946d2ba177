package review_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/internal/review"
)

// errQuits is the cause of the end of a base context.
var errQuits = errors.New("the server quits")

// based is a server whose base context ends with stop.
type based struct {
	*httptest.Server
	base  context.Context
	stop  func()
	calls chan context.Context // of the author's function
	ends  chan error           // what the author's function returns
}

// newBased returns a server whose author's function waits for its context or for ends. The listener is
// of the type that a BaseContext may expect.
func newBased(t *testing.T, http2 bool, wrap func(http.Handler) http.Handler) *based {
	t.Helper()
	base, stop := context.WithCancelCause(t.Context())
	s := &based{base: base, stop: func() { stop(errQuits) }, calls: make(chan context.Context, 1), ends: make(chan error)}
	p := protocol(func(ctx context.Context, _ *review.Request) ([]byte, error) {
		s.calls <- ctx
		select {
		case err := <-s.ends:
			return []byte(`{}`), err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	s.Server = httptest.NewUnstartedServer(wrap(p.Handler()))
	s.Config.BaseContext = func(l net.Listener) context.Context {
		if !http2 {
			_ = l.(*net.TCPListener).Addr()
		}
		return base
	}
	if http2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// send sends a review, and returns the status code.
func (s *based) send(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(question))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.Client().Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func soon(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the context has not ended after five seconds")
	}
}

// A request in flight is answered after the base context of the server has ended, which
// controller-runtime does before it shuts the server down. A client that disconnects, before or after
// that, ends the work.
func TestHandler_BaseContextEnds(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := newBased(t, http2, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(unwrapper{w}, r) })
			})
			leave := func() {
				t.Helper()
				client, disconnect := context.WithCancel(t.Context())
				left := make(chan struct{})
				go func() { defer close(left); _, _ = s.send(client) }()
				ctx := <-s.calls
				disconnect()
				soon(t, ctx)
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("got %v", ctx.Err())
				}
				<-left
			}
			leave()
			go func() {
				ctx := <-s.calls
				s.stop()
				time.Sleep(10 * time.Millisecond) // the request's own context has ended too
				s.ends <- ctx.Err()
			}()
			if code, err := s.send(t.Context()); code != http.StatusOK || err != nil {
				t.Errorf("the server stops: got %d, %v", code, err)
			}
			leave()
			s.Close()
			for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				if !strings.Contains(string(stacks), "internal/review.while") {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("goroutines leak:\n%s", stacks)
				}
			}
		})
	}
}

// unwrapper is the response writer of middleware.
type unwrapper struct{ w http.ResponseWriter }

func (u unwrapper) Header() http.Header         { return u.w.Header() }
func (u unwrapper) Write(b []byte) (int, error) { return u.w.Write(b) }
func (u unwrapper) WriteHeader(code int)        { u.w.WriteHeader(code) }
func (u unwrapper) Unwrap() http.ResponseWriter { return u.w }

// The deadline of middleware holds, also after the base context has ended.
func TestHandler_MiddlewareDeadline(t *testing.T) {
	for name, quits := range map[string]bool{"serves": false, "quits": true} {
		t.Run(name, func(t *testing.T) {
			s := newBased(t, false, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
					defer cancel()
					h.ServeHTTP(w, r.WithContext(ctx))
				})
			})
			sent := make(chan int, 1)
			go func() { code, _ := s.send(t.Context()); sent <- code }()
			ctx := <-s.calls
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the context has no deadline")
			}
			if quits {
				s.stop()
			}
			soon(t, ctx)
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("got %v", ctx.Err())
			}
			if code := <-sent; code != http.StatusGatewayTimeout {
				t.Errorf("got %d", code)
			}
		})
	}
}

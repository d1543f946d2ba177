package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/webhook"
)

// isOpen says whether the server has not closed a connection.
func isOpen(t testing.TB, conn net.Conn) bool {
	t.Helper()
	check(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	check(t, conn.SetReadDeadline(time.Time{}))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// request sends a request on a connection, and reads the answer.
func request(t testing.TB, conn net.Conn, body string) {
	t.Helper()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check(t, err)
	got, err := io.ReadAll(resp.Body)
	check(t, err)
	if string(got) != body {
		t.Errorf("got %s", got)
	}
}

func TestAConnectionTooManyTakesThePlaceOfTheOneThatIsMissedLeast(t *testing.T) {
	goOn := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = io.Copy(io.Discard, r.Body)
			<-goOn
		}
		echo(w, r)
	}), webhook.MaxConnections(5))
	defer close(goOn)
	names := map[string]*tls.Conn{}
	dial := func(name, send string) *tls.Conn {
		conn := s.dial(t, "http/1.1")
		fmt.Fprint(conn, send)
		time.Sleep(20 * time.Millisecond) // so that the server notices
		names[name] = conn
		return conn
	}
	// In the reverse order of who has to go; the oldest would be the one at work.
	dial("working", "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	dial("receiving", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx")
	request(t, dial("idle", ""), "x")
	dial("slow header", "POST / HTT")
	dial("fresh", "")
	var got []string
	for range 3 {
		// A newcomer stays at its request: else it would have to go before others.
		dial("a newcomer", "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		for name, conn := range names {
			if !isOpen(t, conn) {
				got = append(got, name)
				delete(names, name)
			}
		}
	}
	if diff := cmp.Diff([]string{"slow header", "fresh", "idle"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoSendsForLongestGoesBeforeWhoIsBeingAnswered(t *testing.T) {
	goOn := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		<-goOn
		_, _ = w.Write(body)
	}), webhook.MaxConnections(3))
	begin := func(send string) net.Conn {
		conn := s.dial(t, "http/1.1")
		fmt.Fprint(conn, send)
		time.Sleep(20 * time.Millisecond)
		return conn
	}
	const all, part = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na"
	conns := []net.Conn{begin(all), begin(part), begin(part)}
	open := func() (open []bool) {
		for _, conn := range conns {
			open = append(open, isOpen(t, conn))
		}
		return open
	}
	var got [][]bool
	for range 3 {
		conns = append(conns, begin(all))
		got = append(got, open())
	}
	want := [][]bool{
		{true, false, true, true},
		{true, false, false, true, true},
		{false, false, false, true, true, true}, // all are at work: the oldest goes
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	close(goOn)
}

// As an API server's do, all on one connection.
func TestRequestsThatTimeOutDoNotCutOthersOff(t *testing.T) {
	t.Parallel()
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		time.Sleep(time.Second)
		_, _ = w.Write(body)
	}))
	client := s.client(t, true)
	mustPost(t, client, s.url(), "x") // so that there is a connection
	var all sync.WaitGroup
	all.Go(func() {
		if code, _, err := post(client, s.url(), []byte("x")); code != 200 {
			t.Errorf("the good one got %d, %v", code, err)
		}
	})
	for range 3 {
		for range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, "POST", s.url()+"/slow", strings.NewReader("x"))
				check(t, err)
				if _, err := client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a slow one got %v", err)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
	}
	all.Wait()
}

package webhook_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/webhook"
)

// upload is a request whose body is sent bit by bit.
type upload struct {
	pipe   *io.PipeWriter
	answer chan string
}

func newUpload(client *http.Client, url string) *upload {
	reader, writer := io.Pipe()
	u := &upload{pipe: writer, answer: make(chan string, 1)}
	go func() {
		resp, err := client.Post(url, "application/json", reader)
		if err != nil {
			u.answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		var status metav1.Status
		if resp.StatusCode != http.StatusOK {
			if err := json.Unmarshal(body, &status); err != nil {
				u.answer <- fmt.Sprintf("%s: %v", body, err)
				return
			}
			u.answer <- fmt.Sprintf("%d %s %s %v", resp.StatusCode, resp.Header.Get("Retry-After"), status.Reason, err)
			return
		}
		u.answer <- fmt.Sprintf("%d %s %d %v", resp.StatusCode, resp.Header.Get("Retry-After"), len(body), err)
	}()
	return u
}

func (u *upload) send(n int) { _, _ = u.pipe.Write(bytes.Repeat([]byte("x"), n)) }

func TestMaxBodyBytes_RefusesWhatDoesNotFit(t *testing.T) {
	protocols(t, func(t *testing.T, http2 bool) {
		var read atomic.Int64
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Handler", "yes")
			var all bytes.Buffer
			if _, err := all.ReadFrom(io.TeeReader(r.Body, counter{&read})); err != nil {
				http.Error(w, "the body cannot be read", http.StatusBadRequest)
				return
			}
			_, _ = w.Write(all.Bytes())
		}), webhook.MaxBodyBytes(16<<20))
		client := s.client(t, http2)
		// 14 of 16 MiB are for large ones.
		first, second := newUpload(client, s.url()), newUpload(client, s.url())
		for _, u := range []*upload{first, second} {
			before := read.Load()
			u.send(6 << 20)
			eventually(t, "6 MiB are read", func() bool { return read.Load() >= before+6<<20 })
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			second.send(3 << 20)
		}()
		if diff := cmp.Diff("503 1 ServiceUnavailable <nil>", <-second.answer); diff != "" {
			t.Errorf("the second (-want +got):\n%s", diff)
		}
		<-sent
		first.send(7 << 20)
		check(t, first.pipe.Close())
		if diff := cmp.Diff(fmt.Sprint("200  ", 13<<20, " <nil>"), <-first.answer); diff != "" {
			t.Errorf("the first (-want +got):\n%s", diff)
		}
		// All of it has been given back.
		if code, _, err := post(client, s.url(), make([]byte, 13<<20)); code != 200 {
			t.Errorf("afterwards, a large one gets %d, %v", code, err)
		}
	})
}

// counter counts what is written.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// A handler that is slow to return after a failed read does not keep other clients out.
func TestMaxBodyBytes_GivesBackAtTheRefusal(t *testing.T) {
	goOn, failed := make(chan struct{}), make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			fmt.Fprint(w, len(body))
			return
		}
		close(failed)
		<-goOn
	}), webhook.MaxBodyBytes(16<<20))
	refused := newUpload(s.client(t, true), s.url())
	go refused.send(15 << 20)
	<-failed
	if got := mustPost(t, s.client(t, true), s.url(), strings.Repeat("x", 13<<20)); got != fmt.Sprintln("200", 13<<20) {
		t.Errorf("meanwhile, another one gets %s", got)
	}
	close(goOn)
	if diff := cmp.Diff("503 1 ServiceUnavailable <nil>", <-refused.answer); diff != "" {
		t.Errorf("the refused one (-want +got):\n%s", diff)
	}
}

// Small bodies go on while large ones are being worked on.
func TestMaxBodyBytes_SmallBesideLarge(t *testing.T) {
	goOn := make(chan struct{})
	entered := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if len(body) == 13<<20 {
			entered <- struct{}{}
			<-goOn
		}
		fmt.Fprint(w, len(body))
	}), webhook.MaxBodyBytes(16<<20))
	client := s.client(t, false)
	done := make(chan string)
	go func() { done <- mustPost(t, client, s.url(), strings.Repeat("x", 13<<20)) }()
	<-entered
	for range 10 {
		if got := mustPost(t, client, s.url(), "small"); got != "200 5\n" {
			t.Errorf("a small one got %s", got)
		}
	}
	resp, err := client.Post(s.url(), "", bytes.NewReader(make([]byte, 2<<20)))
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("another large one got %s", resp.Status)
		}
	}
	close(goOn)
	if got := <-done; got != fmt.Sprintln("200", 13<<20) {
		t.Errorf("the large one got %s", got)
	}
}

// Reads after the handler do not count.
func TestMaxBodyBytes_ReadsAfterHandler(t *testing.T) {
	read := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	mux := http.NewServeMux()
	mux.Handle("/", http.TimeoutHandler(read, 20*time.Millisecond, "slow"))
	mux.Handle("/all", echo)
	s := start(t, mux, webhook.MaxBodyBytes(2<<20))
	var all sync.WaitGroup
	for range 40 {
		conn := s.dial(t, "http/1.1")
		all.Go(func() {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n%s", strings.Repeat("x", 30000))
			time.Sleep(500 * time.Millisecond)
			_, _ = conn.Write(bytes.Repeat([]byte("x"), 30000)) // which a goroutine still reads
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "" {
				t.Errorf("got %v, %v: it should be the answer of the timeout", resp, err)
			}
		})
	}
	all.Wait()
	// There would be no room for it if any of the 40 times 30,000 bytes counted still.
	if code, _, err := post(s.client(t, true), s.url()+"/all", make([]byte, 1700<<10)); code != 200 {
		t.Errorf("afterwards, a request gets %d, %v", code, err)
	}
}

// The client of the API server tries again when it was cut off. The API server calls a webhook with
// this client.
func TestMaxBodyBytes_ClientTriesAgain(t *testing.T) {
	t.Parallel()
	s := start(t, echo, webhook.MaxBodyBytes(16<<20))
	hog := newUpload(s.client(t, false), s.url())
	hog.send(12 << 20)
	config := &rest.Config{Host: s.url(), ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.pem(), ServerName: "localhost", NextProtos: []string{"http/1.1"}}}
	client, err := rest.UnversionedRESTClientFor(config)
	check(t, err)
	body := append(append([]byte(`"`), bytes.Repeat([]byte("x"), 13<<20)...), '"')
	go func() {
		time.Sleep(300 * time.Millisecond)
		_ = hog.pipe.Close()
	}()
	got, err := client.Post().AbsPath("/").Body(body).DoRaw(t.Context())
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("it got %d bytes, %v", len(got), err)
	}
}

package apiservertest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// A handler may answer before it has read the body.
func TestTransport_ResponseToPartOfTheBody(t *testing.T) {
	rt := newTransport(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}))
	for range 1000 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://apiservertest", strings.NewReader(strings.Repeat("x", 1<<16)))
		expect.NoError(t, err)
		response, err := rt.RoundTrip(req)
		expect.NoError(t, err)
		expect.NoError(t, response.Body.Close())
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatal(response.Status)
		}
	}
}

// The server would log an error if the client had closed the connection before the handler returns.
func TestFront_OpenAPIOutlivesItsConnection(t *testing.T) {
	ended := make(chan bool, 1)
	f := newFront(&faults{})
	f.server = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, _ = w.Write([]byte("{}"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			ended <- true
		case <-time.After(50 * time.Millisecond):
			ended <- false
		}
	})
	close(f.installed)
	close(f.published)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://apiservertest/openapi/v3", nil)
	expect.NoError(t, err)
	response, err := newTransport(t.Context(), f).RoundTrip(req)
	expect.NoError(t, err)
	_, err = io.ReadAll(response.Body)
	expect.NoError(t, err)
	expect.NoError(t, response.Body.Close())
	if <-ended {
		t.Error("the request ended with the connection")
	}
}

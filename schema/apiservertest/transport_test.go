package apiservertest

import (
	"net/http"
	"strings"
	"testing"

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

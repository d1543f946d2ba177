package offline

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// A WebhookCall is a request of the server to a webhook, and the answer.
type WebhookCall struct {
	// URL is that of the webhook's clientConfig, with the name and the port of a Service as its host.
	URL *url.URL
	// Request and Response are an AdmissionReview or a ConversionReview in JSON. With a status
	// other than 200, Response is what the webhook has written.
	Request, Response []byte
	// Err is the status if that is not 200, or says why there is no complete answer.
	Err error
}

// WebhookCalls returns the requests to webhooks that have ended since the last call of
// WebhookCalls, oldest first. Of reviews with more than 16 MiB in all, the oldest are forgotten.
//
// The server converts objects not only for the client that asks: it has a cache for each served
// version, and converts what is written for the other caches a moment later. A test that counts
// conversions runs in a bubble, and calls [testing/synctest.Wait] first.
func (s *Server) WebhookCalls() []WebhookCall {
	l := s.webhooks.calls
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls, l.size = nil, 0
	return calls
}

const maxCallLog = 16 << 20

type callLog struct {
	mu    sync.Mutex
	calls []WebhookCall
	size  int // of all reviews
}

func (l *callLog) add(c WebhookCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
	l.size += len(c.Request) + len(c.Response)
	for l.size > maxCallLog {
		l.size -= len(l.calls[0].Request) + len(l.calls[0].Response)
		l.calls = l.calls[1:]
	}
}

// recorder logs what it sends.
type recorder struct {
	next http.RoundTripper
	log  *callLog
}

func (r recorder) RoundTrip(req *http.Request) (response *http.Response, err error) {
	call := WebhookCall{URL: req.URL}
	defer func() {
		call.Err = err
		if err == nil && response.StatusCode != http.StatusOK {
			call.Err = errors.New(response.Status)
		}
		r.log.add(call)
	}()
	if call.Request, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	in := req.Clone(req.Context())
	in.Body = io.NopCloser(bytes.NewReader(call.Request))
	if response, err = r.next.RoundTrip(in); err != nil {
		return nil, err
	}
	call.Response, err = io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(call.Response))
	return response, nil
}

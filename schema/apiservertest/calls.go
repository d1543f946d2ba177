package apiservertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// WebhookCall is a request of the server to a webhook, and the response.
type WebhookCall struct {
	// URL is the URL of the webhook. For a webhook with a Service, the host is the DNS name and
	// the port of the Service; without a [Handler], it is the external name and the port.
	URL *url.URL
	// Request and Response contain an AdmissionReview or a ConversionReview in JSON. If the
	// HTTP status is not 200, Response is the body, which may not be JSON.
	Request, Response []byte
	// Err contains the status if it is not 200, or the reason why the response is missing or
	// incomplete.
	Err error
}

// WebhookCalls returns the webhook requests that have finished since the last call of WebhookCalls,
// oldest first. If they exceed 16 MiB with their responses, the oldest ones are dropped.
//
// A moment after a write, the server also converts the object for the caches of the other served
// versions. To count conversions, run the test in a bubble, and call [testing/synctest.Wait] before
// WebhookCalls.
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

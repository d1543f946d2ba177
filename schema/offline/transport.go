package offline

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/debug"
	"time"
)

// transport sends requests to a handler in memory. It does not wait for a handler that is
// too late, and neither does a server.
type transport struct {
	handler   http.Handler
	noAddress bool // the registration has no clientConfig
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	in := req.Clone(req.Context())
	in.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	in.Host, in.RequestURI, in.RemoteAddr = req.URL.Host, in.URL.RequestURI(), "127.0.0.1:1"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	type result struct {
		response *http.Response
		err      error
	}
	done := make(chan result, 1)
	go func() {
		response, err := t.serve(in)
		done <- result{response, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			return nil, r.err
		case r.response.StatusCode == http.StatusNotFound && t.noAddress:
			return nil, fmt.Errorf("the handler has answered 404: a webhook without a clientConfig is called at the path %s, so give it a clientConfig or the handler alone", in.URL.Path)
		}
		r.response.Request = req
		return r.response, nil
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// serve contains a panic. So does net/http, which drops the connection then.
func (t transport) serve(in *http.Request) (_ *http.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	w := recorder{httptest.NewRecorder()}
	t.handler.ServeHTTP(w, in)
	return w.Result(), nil
}

var _ http.RoundTripper = transport{}

// recorder keeps an answer. What a handler can ask of the connection to a server, by
// http.ResponseController, it may ask here too: there is no connection, and nothing to do.
// (Package httptest adds no flag to a program, unless it is called with -httptest.serve.)
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }
func (recorder) EnableFullDuplex() error          { return nil }

var (
	_ http.ResponseWriter = recorder{}
	_ http.Flusher        = recorder{}
)

package apiservertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// transport sends requests to a handler in this process. Answers are streamed, so that watches
// work. Requests end when the server does.
type transport struct {
	handler http.Handler
	done    context.Context
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.done.Err() != nil {
		return nil, http.ErrServerClosed
	}
	ctx, cancel := context.WithCancelCause(context.Background()) // values do not cross a network
	ended := context.AfterFunc(req.Context(), func() { cancel(context.Cause(req.Context())) })
	stop := context.AfterFunc(t.done, func() { cancel(http.ErrServerClosed) })
	in := req.Clone(ctx)
	in.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	in.Host, in.RequestURI, in.RemoteAddr = req.URL.Host, in.URL.RequestURI(), "127.0.0.1:1"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if _, ok := in.Header["User-Agent"]; !ok { // the manager of managedFields is named by it
		in.Header.Set("User-Agent", "Go-http-client/1.1")
	}
	body, pipe := io.Pipe()
	w := &responseWriter{ctx: ctx, head: req.Method == http.MethodHead, header: http.Header{}, pipe: pipe, started: make(chan struct{})}
	go func() {
		defer cancel(nil)
		defer stop()
		defer ended()
		w.end(serve(t.handler, w, in))
	}()
	select {
	case <-w.started:
	case <-ctx.Done():
		select {
		case <-w.started: // the handler has ended; its answer has no body
		default:
			body.CloseWithError(context.Cause(ctx)) // the handler must not wait for a reader
			return nil, context.Cause(ctx)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	length, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64)
	switch {
	case w.code == http.StatusNoContent || w.code == http.StatusNotModified:
		length = 0
	case err != nil:
		length = -1
	}
	// The handler's request ends when its answer is not read any longer.
	unread := context.AfterFunc(ctx, func() { pipe.CloseWithError(context.Cause(ctx)) })
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: responseBody{body, func() { unread(); cancel(nil) }}, ContentLength: length, Request: req,
	}, nil
}

// serve contains a panic, as net/http does, which drops the connection then.
func serve(h http.Handler, w http.ResponseWriter, in *http.Request) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			err = fmt.Errorf("the handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	h.ServeHTTP(w, in)
	return nil
}

// responseBody ends the handler's request when it is closed.
type responseBody struct {
	*io.PipeReader
	cancel func()
}

func (b responseBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// responseWriter hands an answer over as it is written.
type responseWriter struct {
	ctx          context.Context
	head         bool // no body is sent
	header, sent http.Header
	pipe         *io.PipeWriter

	once    sync.Once
	started chan struct{} // closed when code, or else err, is there
	code    int
	err     error
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.started)
	})
}

// Write drops the body of the answer to a HEAD, and what is written after the request has ended, so
// that the end of a watch is not an error to the handler.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.head {
		return len(p), nil
	}
	n, err := w.pipe.Write(p)
	if w.ctx.Err() != nil {
		return len(p), nil
	}
	return n, err
}

func (w *responseWriter) end(err error) {
	w.once.Do(func() {
		w.code, w.sent, w.err = http.StatusOK, w.header.Clone(), err
		close(w.started)
	})
	w.pipe.CloseWithError(err)
}

// Flush starts the answer. There is no buffer.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// There is no connection with deadlines: what a handler asks of it succeeds.

func (w *responseWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *responseWriter) SetWriteDeadline(time.Time) error { return nil }
func (w *responseWriter) EnableFullDuplex() error          { return nil }

// CloseNotify exists because API servers require it of a connection that can be watched.
func (w *responseWriter) CloseNotify() <-chan bool { return nil }

var _ http.Flusher = (*responseWriter)(nil)

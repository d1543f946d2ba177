// Package inprocess calls HTTP handlers without a network.
package inprocess

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Response is an [http.ResponseWriter] that keeps the response.
type Response struct {
	Code   int
	Body   bytes.Buffer
	header http.Header
}

// NewResponse returns an empty response.
func NewResponse() *Response { return &Response{Code: http.StatusOK, header: http.Header{}} }

func (r *Response) Header() http.Header         { return r.header }
func (r *Response) WriteHeader(code int)        { r.Code = code }
func (r *Response) Write(p []byte) (int, error) { return r.Body.Write(p) }

// Serve calls a handler. If it panics, the error is that of a connection which net/http closes.
func (r *Response) Serve(h http.Handler, request *http.Request) (err error) {
	defer func() {
		if recover() != nil {
			err = io.EOF
		}
	}()
	h.ServeHTTP(r, request)
	return nil
}

// Post sends JSON to a handler, whose log is discarded, and returns the body of the response.
func Post(ctx context.Context, h http.Handler, path string, body []byte) ([]byte, error) {
	ctx = klog.NewContext(ctx, logr.Discard())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	r := NewResponse()
	if err := r.Serve(h, request); err != nil {
		return nil, err
	}
	if r.Code != http.StatusOK {
		text := bytes.TrimSpace(r.Body.Bytes())
		return nil, fmt.Errorf("status %s: %s", http.StatusText(r.Code), text[:min(len(text), 1000)])
	}
	return r.Body.Bytes(), nil
}

package apiservertest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// pipes is a listener for connections within this process. It accepts them until it is closed, or the context is done.
type pipes struct {
	done  context.Context
	close context.CancelFunc
	conns chan net.Conn
}

func newPipes(ctx context.Context) pipes {
	done, cancel := context.WithCancel(ctx)
	return pipes{done, cancel, make(chan net.Conn)}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return clientConn{client}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}

// clientConn is the client's end of a connection.
type clientConn struct{ net.Conn }

// Write succeeds if the server has closed the connection, as it does for TCP while there is space in a buffer. Otherwise, a
// client could get an error in place of the response to a request whose body the server does not read to its end.
func (c clientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		return len(p), nil
	}
	return n, err
}

// transport sends all requests to a handler in this process, without TLS, until the context is done.
type transport struct {
	http.RoundTripper
	done context.Context
}

// newTransport returns a transport that never reuses a connection. Otherwise, it would repeat a GET whose connection breaks,
// as a [Fault] breaks it.
func newTransport(done context.Context, h http.Handler) http.RoundTripper {
	p := newPipes(done)
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(p) }() // until the context is done
	context.AfterFunc(done, func() { _ = server.Close() })
	return transport{&http.Transport{DialContext: p.dial, DialTLSContext: p.dial, DisableKeepAlives: true, DisableCompression: true}, done}
}

// RoundTrip returns an error after the end for which clients do not try again.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(req)
	if err != nil && t.done.Err() != nil {
		return nil, http.ErrServerClosed
	}
	return response, err
}

package webhook

import (
	"container/list"
	"context"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchange is a request in progress, seen from its answer and its body. The answer
// leads the client away when the server stops, and is a 503 when the request was cut
// off; all else is the handler's.
type exchange struct {
	http.ResponseWriter
	server *server
	conn   *connection
	proto  int

	began   bool // the answer
	refused bool // the answer is ours, and what the handler writes is lost

	// For connections, which guards them.
	start    time.Time
	cost     int64
	received bool // all of the request
	ended    bool

	// For bodies, which guards them.
	size      int64
	cutOff    bool
	uncounted bool
	reading   *list.Element
}

// requestCost is what a request takes by being there, with a header of up to
// headerUnit: the stacks and the buffers of net/http.
const (
	requestCost = 16 << 10
	headerUnit  = 4 << 10
)

// cost is what a request takes without its body. It is rounded, so that of ordinary
// requests none has more than another. Sizes are as RFC 9113, section 6.5.2, counts
// them.
func cost(r *http.Request) int64 {
	n := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + 32
		}
	}
	return requestCost + int64(n)/headerUnit*headerUnit
}

// ServeHTTP serves a request of the handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, server: s, proto: r.ProtoMajor, start: time.Now(), cost: cost(r)}
	x.conn = r.Context().Value(connectionKey{}).(*connection)
	admitted := s.connections.begin(x)
	answered := func() bool { return true }
	if x.proto == 2 {
		answered = context.AfterFunc(r.Context(), func() { s.connections.reset(x) })
	}
	defer func() { s.connections.end(x, answered()) }()
	if !admitted {
		x.began = true
		x.refuse()
		return
	}
	if r.Body == nil || r.Body == http.NoBody {
		s.connections.received(x)
	} else {
		defer s.bodies.end(x)
		with, given := *r, r // a handler may not change the request it was given (http.Handler)
		with.Body = &body{r.Body, x}
		r = &with
		defer func() { given.MultipartForm = with.MultipartForm }() // net/http removes its files
	}
	s.handler.ServeHTTP(x, r)
	x.begin()
}

// body counts what is read.
type body struct {
	io.ReadCloser
	x *exchange
}

func (b *body) Read(p []byte) (int, error) {
	if b.x.server.bodies.wasCutOff(b.x) {
		return 0, errCutOff
	}
	n, err := b.ReadCloser.Read(p)
	if b.x.server.bodies.read(b.x, n, err != nil) {
		return n, errCutOff
	}
	if err == io.EOF {
		b.x.server.connections.received(b.x)
	}
	return n, err
}

// begin does what has to be done before the header of the answer is sent.
func (x *exchange) begin() {
	if x.began {
		return
	}
	x.began = true
	if x.server.stopping.Err() != nil {
		// In HTTP/1.1, this tells the client to send no more. In HTTP/2, net/http makes
		// a GOAWAY of it, after which a client repeats what was not answered.
		x.Header().Set("Connection", "close")
	}
	if x.server.bodies.wasCutOff(x) {
		x.refuse()
	}
}

// refuse gives our answer.
func (x *exchange) refuse() {
	x.refused = true
	clear(x.Header())
	if x.proto == 1 { // the rest of the body stays unread
		x.Header().Set("Connection", "close")
	}
	writeStatus(x.ResponseWriter, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the webhook has more requests in memory than it may: try again", 1)
}

// WriteHeader is for http.ResponseWriter.
func (x *exchange) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		x.begin()
	}
	if !x.refused {
		x.ResponseWriter.WriteHeader(code)
	}
}

// Write is for http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	x.begin()
	if x.refused {
		return len(p), nil
	}
	return x.ResponseWriter.Write(p)
}

// Flush is for http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// FlushError is for http.ResponseController.
func (x *exchange) FlushError() error {
	x.begin()
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

var (
	_ http.ResponseWriter = (*exchange)(nil)
	_ http.Flusher        = (*exchange)(nil)
)

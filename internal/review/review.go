package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
)

// Protocol is one kind of review.
type Protocol struct {
	Group, Kind string
	// Answer reads a request, and returns its answer: [Request.Begin] with the JSON of the response. It
	// must not keep any of the request, whose memory is used again for the next one.
	Answer func(ctx context.Context, req *Request) ([]byte, error)
	// Failure returns the JSON of a response for a request that failed.
	// If it is nil, a failure is an HTTP error with a Status: that
	// makes the API server apply a failure policy or try again.
	Failure func(req *Request, err error) (response []byte)
	// Failed, if it is set, is told why a request failed, before that is answered.
	Failed func(ctx context.Context, err error)
	// InParts is set if Answer takes the memory for a large request itself, part after part.
	InParts bool

	apiVersions []string
	pieces      *buffers // of answers
	bodies      *buffers // larger than Small
}

// Handler serves the protocol. All handlers of the process share the memory for reviews.
func (p Protocol) Handler() http.Handler { return p.handler(process()) }

// handler serves the protocol with a memory. A request takes this path:
//
//   - Request.serve ends the context when the client goes away, or before the API server gives up;
//   - Request.read checks the method and the content type, and reads the body within the memory limit;
//   - Protocol.Answer, which is answer in conversion and in admission, reads the members of the review and
//     makes the response;
//   - writeJSON writes it. After an error or a panic, fail answers with Protocol.Failure, or else with an
//     HTTP error.
func (p Protocol) handler(m *memory) http.Handler {
	p.apiVersions = []string{p.Group + "/v1", p.Group + "/v1beta1"}
	p.pieces, p.bodies = &buffers{}, &buffers{}
	var pool sync.Pool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := pool.Get().(*Request)
		if req == nil {
			req = &Request{}
		}
		*req = Request{protocol: &p, account: account{memory: m}, body: req.body[:0], response: req.response[:0]}
		written := false
		defer func() {
			req.give(req.size.Load())
			if written && max(cap(req.body), cap(req.response)) <= Small+Small/4 {
				pool.Put(req)
			}
		}()
		end, err := req.serve(w, r)
		if err != nil {
			req.give(req.size.Load())
			// The client may be slow to read why.
			*req = Request{protocol: &p, account: account{memory: m}, APIVersion: req.APIVersion, UID: req.UID}
			if Refused(err) {
				// net/http would cut off a client that is still sending, before it reads the answer.
				_, _ = io.CopyN(io.Discard, r.Body, m.max)
			}
			req.fail(w, r, err)
			return
		}
		req.response = append(end, '}')
		if written = writeJSON(w, http.StatusOK, req.Pieces, req.response) == nil; !written {
			return // the server may still read the buffers (net/http's writeDataFromHandler)
		}
		for _, piece := range req.Pieces {
			p.pieces.put(piece)
		}
		if len(req.body) > Small {
			p.bodies.put(req.body)
			req.body = nil
		}
	})
}

// fail answers in the protocol if that has failures, otherwise with a Status. The
// API server shows the message of either to the user. A Status carries the UID
// and the version of the request in its details: client-go reads an error
// response as a Status or not at all (rest.Result.Error).
//
// Failures are logged as information, because zap adds a stack to errors: that of this function.
func (req *Request) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx, p := r.Context(), req.protocol
	if p.Failed != nil {
		p.Failed(ctx, err)
	}
	refused := Refused(err) // what the API server repeats if it is an HTTP error
	inProtocol := !refused && p.Failure != nil && req.UID != "" && slices.Contains(p.apiVersions, req.APIVersion)
	status := Status(err)
	again := refused && status.Code == http.StatusServiceUnavailable
	if again && req.memory.worthLine() || !again && (refused || inProtocol || status.Code >= http.StatusInternalServerError) {
		klog.FromContext(ctx).Info("Webhook request failed", "err", logtext.Error(err), "review", p.Kind, "path", logtext.Text(r.URL.Path), "uid", logtext.Text(string(req.UID)))
	}
	if inProtocol {
		_ = writeJSON(w, http.StatusOK, nil, append(append(req.Begin(), p.Failure(req, err)...), '}'))
		return
	}
	details := metav1.StatusDetails{}
	if status.Details != nil {
		details = *status.Details
	}
	if details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	if req.UID != "" {
		if details.Kind == "" {
			details.Group, details.Kind = p.Group, p.Kind
		}
		details.UID = req.UID
		details.Causes = append(details.Causes[:len(details.Causes):len(details.Causes)],
			metav1.StatusCause{Type: "ReviewVersion", Message: req.APIVersion})
	}
	status.Details = &details
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil { // a Status holds nothing that cannot be encoded
		panic(err)
	}
	if status.Code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	_ = writeJSON(w, int(status.Code), nil, body)
}

// writeJSON writes JSON that is in pieces, and the rest, unless a write fails.
func writeJSON(w http.ResponseWriter, code int, pieces [][]byte, rest []byte) error {
	size := len(rest)
	for _, piece := range pieces {
		size += len(piece)
	}
	header := w.Header() // the names are canonical: Set need not look
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(code)
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			return err // the API server has gone
		}
	}
	_, err := w.Write(rest)
	return err
}

// MaxMessage is how many bytes of a message the user sees.
const MaxMessage = 32 << 10

// Status returns the Status of an error: the code, reason and details of an API
// error that it is or wraps; a timeout, if the deadline passed; else an internal
// error. The message is that of the whole error, up to [MaxMessage] bytes.
func Status(err error) metav1.Status {
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &api):
		status := api.Status()
		status.Status = metav1.StatusFailure
		status.Message = logtext.Cut(err.Error(), MaxMessage) // with what was wrapped around it
		if status.Code < http.StatusBadRequest || status.Code > 599 {
			status.Code = http.StatusInternalServerError
		}
		return status
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s", logtext.Cut(err.Error(), MaxMessage)).Status()
	default:
		return status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s", logtext.Cut(err.Error(), MaxMessage)).Status()
	}
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
	}}
}

// withTimeout applies the timeout that the API server names in the query (client-go/rest/request.go), less a tenth
// and at most a second, so that the API server gets the answer before it gives up.
func withTimeout(ctx context.Context, r *http.Request) (context.Context, context.CancelFunc) {
	if r.URL.RawQuery == "" {
		return ctx, func() {}
	}
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout-min(timeout/10, time.Second))
}

// whileClientWaits returns a context for a request that ends when the client disconnects or a deadline
// of middleware passes, but not when the server is shut down. The manager of controller-runtime ends the
// base context of its server, and waits for the requests in flight, which must be answered
// (controller-runtime/pkg/internal/httpserver).
//
// Only CloseNotify tells a client that disconnects from the end of the base context, in HTTP/1.1 and
// HTTP/2. It is asked when the context of the request ends, because it starts a goroutine in HTTP/2. A
// context that middleware cancels looks like the end of the base context, and does not end the work. If
// middleware hides CloseNotify, the work ends with the context of the request.
func whileClientWaits(ctx context.Context, w http.ResponseWriter) (context.Context, context.CancelFunc) {
	server, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	client := closeNotifierOf(w)
	if server == nil || server.BaseContext == nil || client == nil {
		return ctx, func() {}
	}
	waits, release := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		waits, release = context.WithDeadline(waits, deadline)
	}
	waits, cancel := context.WithCancel(waits)
	asked := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(asked)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return // waits has the same deadline
		}
		select {
		case <-client.CloseNotify():
			cancel()
		case <-waits.Done():
		}
	})
	return waits, func() {
		cancel()
		release()
		if !stop() {
			<-asked // CloseNotify panics after the handler has returned
		}
	}
}

// closeNotifier is [http.CloseNotifier], which is deprecated in favor of the context of the request.
type closeNotifier interface{ CloseNotify() <-chan bool }

// closeNotifierOf returns the response writer of net/http that middleware has wrapped. It returns nil if
// there is none, or if the server is that of webhook.Serve, whose base context never ends.
func closeNotifierOf(w http.ResponseWriter) closeNotifier {
	for {
		if _, ok := w.(interface{ BaseContextNeverEnds() }); ok {
			return nil
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			client, _ := w.(closeNotifier)
			return client
		}
		w = wrapper.Unwrap()
	}
}

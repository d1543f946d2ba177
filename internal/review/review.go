package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Protocol is one kind of review.
type Protocol struct {
	Group, Kind string
	// New returns what reads the members of requests, one after another.
	New func() Members
	// Answer appends the JSON of the response to b. It must not keep any of the request, whose
	// memory is used again for the next one.
	Answer func(ctx context.Context, req *Request, b []byte) ([]byte, error)
	// Failure returns the JSON of a response for a request that failed.
	// If it is nil, a failure is an HTTP error with a Status: that
	// makes the API server apply a failure policy or try again.
	Failure func(req *Request, err error) (response []byte)
	// Failed, if it is set, is told why a request failed, before that is answered.
	Failed func(ctx context.Context, err error)

	apiVersions []string
}

// buffers is the memory of one request, for the next one.
type buffers struct {
	body     bytes.Buffer
	parser   parser
	response []byte
}

// Handler serves the protocol. A body of more than limit bytes is refused.
func (p Protocol) Handler(limit int64) http.Handler {
	p.apiVersions = []string{p.Group + "/v1", p.Group + "/v1beta1"}
	var pool sync.Pool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const keep = 8 << 20 // one enormous request must not stay forever
		buf, _ := pool.Get().(*buffers)
		if buf == nil {
			buf = &buffers{}
		}
		defer func() {
			if buf.body.Cap()+cap(buf.response) <= keep {
				pool.Put(buf)
			}
		}()
		ctx := r.Context()
		body, err := read(w, r, limit, &buf.body)
		if err != nil {
			p.fail(ctx, w, &Request{}, err)
			return
		}
		req := &buf.parser.Request
		if err := buf.parser.parse(&p, body); err != nil {
			p.fail(ctx, w, req, apierrors.NewBadRequest(err.Error()))
			return
		}
		ctx, cancel := withTimeout(ctx, r)
		defer cancel()
		response, err := p.answerOrRecover(ctx, req, p.begin(buf.response[:0], req))
		if err != nil {
			p.fail(ctx, w, req, err)
			return
		}
		buf.response = append(response, '}')
		writeJSON(w, http.StatusOK, buf.response)
	})
}

// answerOrRecover makes a panic an error, so that this request gets an answer with its UID.
func (p *Protocol) answerOrRecover(ctx context.Context, req *Request, b []byte) (response []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			klog.FromContext(ctx).Error(err, "Webhook panicked",
				"review", p.Kind, "uid", req.UID, "stack", string(debug.Stack()))
		}
	}()
	return p.Answer(ctx, req, b)
}

// begin appends what comes before the response.
func (p *Protocol) begin(b []byte, req *Request) []byte {
	b = rawjson.AppendQuote(append(b, `{"kind":`...), p.Kind)
	b = rawjson.AppendQuote(append(b, `,"apiVersion":`...), req.APIVersion)
	return append(b, `,"response":`...)
}

// fail answers in the protocol if that has failures, otherwise with a Status. The
// API server shows the message of either to the user. A Status carries the UID
// and the version of the request in its details: client-go reads an error
// response as a Status or not at all (rest.Result.Error).
//
// Failures are logged as information, because zap adds a stack to errors: that of this function.
func (p *Protocol) fail(ctx context.Context, w http.ResponseWriter, req *Request, err error) {
	if p.Failed != nil {
		p.Failed(ctx, err)
	}
	if p.Failure != nil && req.UID != "" && slices.Contains(p.apiVersions, req.APIVersion) {
		klog.FromContext(ctx).Info("Webhook request failed", "err", err, "review", p.Kind, "uid", req.UID)
		writeJSON(w, http.StatusOK, append(append(p.begin(nil, req), p.Failure(req, err)...), '}'))
		return
	}
	status := Status(err)
	if status.Code >= http.StatusInternalServerError {
		klog.FromContext(ctx).Info("Webhook request failed", "err", err, "review", p.Kind, "uid", req.UID)
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
	writeJSON(w, int(status.Code), body)
}

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	header := w.Header() // the names are canonical: Set need not look
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	_, _ = w.Write(body) // on an error, the API server has gone
}

// Status returns the Status of an error: the code, reason and details of an API
// error that it is or wraps; a timeout, if the deadline passed; else an internal
// error. The message is that of the whole error.
func Status(err error) metav1.Status {
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &api):
		status := api.Status()
		status.Status = metav1.StatusFailure
		status.Message = err.Error() // with what was wrapped around it
		if status.Code < http.StatusBadRequest || status.Code > 599 {
			status.Code = http.StatusInternalServerError
		}
		return status
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%v", err).Status()
	default:
		return status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%v", err).Status()
	}
}

// read reads the body of a well-formed request.
func read(w http.ResponseWriter, r *http.Request, limit int64, body *bytes.Buffer) ([]byte, error) {
	body.Reset()
	if r.Method != http.MethodPost {
		return nil, status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"method %s is not allowed: a review is POSTed", r.Method)
	}
	if contentType := r.Header.Get("Content-Type"); !isJSON(contentType) {
		return nil, status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"content type %q is not supported: a review is application/json", contentType)
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"content encoding %q is not supported: a review is not compressed", e)
	}
	if r.Body == nil { // net/http's server never leaves it out
		return nil, apierrors.NewBadRequest("the body is empty")
	}
	// Content-Length counts up to 16 KiB: clients may promise much, and send nothing.
	body.Grow(int(min(max(r.ContentLength, 0), limit, 16<<10)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			"the body is larger than %d bytes, the limit of this handler", limit)
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read: %v", err))
	case body.Len() == 0:
		return nil, apierrors.NewBadRequest("the body is empty")
	}
	return body.Bytes(), nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // as the API server writes it
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
	}}
}

// withTimeout applies the timeout that the API server names in the query
// (apiserver/pkg/admission/plugin/webhook: Request.Timeout).
func withTimeout(ctx context.Context, r *http.Request) (context.Context, context.CancelFunc) {
	if r.URL.RawQuery == "" {
		return ctx, func() {}
	}
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

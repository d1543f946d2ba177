package review

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Request is what both protocols ask alike:
//
//	for name := range req.Members {
//		switch string(name) {
//		case "objects":
//			objects = req.Cursor.Value()
//		default:
//			req.Cursor.Value()
//		}
//	}
//	err := req.End(nil)
type Request struct {
	// APIVersion of the review, such as admission.k8s.io/v1. The answer has the same.
	APIVersion string
	// UID of the request. The answer has the same.
	UID types.UID
	// Raw is the text of the request, in the body. It is set after [Request.Members].
	Raw []byte
	// Large is set if the request is large, and no memory has been taken for it: see [Protocol.InParts].
	Large bool
	// Cursor is in the body, at a member of the request.
	Cursor rawjson.Cursor
	// Pieces are the beginning of the answer. Answer adds what is too long to be copied as it grows.
	Pieces [][]byte

	account
	protocol       *Protocol
	body, response []byte // whose memory the next request uses again
	kind           string
	twice          bool // there are two requests
}

// serve reads a request, and returns the end of its answer: what does not follow Pieces. A panic becomes
// an error, so that this request gets an answer with its UID.
func (req *Request) serve(w http.ResponseWriter, r *http.Request) (end []byte, err error) {
	p := req.protocol
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			klog.FromContext(r.Context()).Error(logtext.Error(err), "Webhook panicked",
				"review", p.Kind, "uid", logtext.Text(string(req.UID)), "stack", string(debug.Stack()))
		}
	}()
	ctx, release := whileClientWaits(r.Context(), w)
	defer release()
	err = req.read(r)
	switch large := len(req.body) > Small; {
	case err != nil:
	case !large:
		err = req.takeSoon(ctx, Cost(req.body))
	case p.InParts:
		req.Large = true
	default:
		err = req.Take(Cost(req.body))
	}
	if err != nil {
		return nil, err
	}
	req.Cursor = rawjson.NewCursor(req.body)
	ctx, cancel := withTimeout(ctx, r)
	defer cancel()
	return p.Answer(ctx, req)
}

// read reads the body of a well-formed request.
func (req *Request) read(r *http.Request) error {
	if r.Method != http.MethodPost {
		return status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"method %s is not allowed: a review is POSTed", r.Method)
	}
	if contentType := r.Header.Get("Content-Type"); !isJSON(contentType) {
		return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"content type %q is not supported: a review is application/json", contentType)
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"content encoding %q is not supported: a review is not compressed", e)
	}
	if r.Body == nil { // net/http's server never leaves it out
		return apierrors.NewBadRequest("the body is empty")
	}
	if limit := req.memory.max; r.ContentLength > limit {
		return tooLarge(r.ContentLength, limit)
	}
	err := req.Take(cap(req.body))
	for err == nil {
		var n int
		if len(req.body) == cap(req.body) {
			err = req.grow(r.ContentLength)
			continue
		}
		n, err = r.Body.Read(req.body[len(req.body):cap(req.body)])
		req.body = req.body[:len(req.body)+n]
	}
	switch {
	case Refused(err):
		return err
	case err != io.EOF:
		return apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read: %v", err))
	case len(req.body) == 0:
		return apierrors.NewBadRequest("the body is empty")
	}
	return nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // as the API server writes it
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

// Members yields the name of each member of the request, and the loop takes its value from the cursor. Of
// members that are there twice, the last one counts, as in the API server's decoder. The version and the
// UID, which the API server writes first, are there as soon as they have been read.
func (req *Request) Members(yield func(name []byte) bool) {
	c := &req.Cursor
	for c.Enter('{'); c.Next('{'); {
		switch string(c.Name()) {
		case "apiVersion":
			req.APIVersion = text(c)
		case "kind":
			req.kind = text(c)
		case "request":
			req.twice = req.Raw != nil
			if c.Begins() == 'n' {
				c.Value()
				continue
			}
			begin := c.Offset()
			for c.Enter('{'); c.Next('{'); {
				if name := c.Name(); string(name) == "uid" {
					req.UID = types.UID(text(c))
				} else if !yield(name) {
					return
				}
			}
			req.Raw = c.Since(begin)
		default:
			c.Value()
		}
	}
}

// maxText is how long an apiVersion, a kind or a UID may be in bytes. Answers repeat them, and their
// memory is not counted.
const maxText = 1 << 10

// text reads a string, or "" if the value is something else or too long.
func text(c *rawjson.Cursor) string {
	value := c.Value()
	if len(value) > maxText {
		return ""
	}
	s, _ := rawjson.String(value)
	return s
}

// End returns why the body is not a review that can be answered, as an API error, or nil. The argument is
// why the loop over the members ended early, or nil.
func (req *Request) End(err error) error {
	if err == nil {
		err = req.Cursor.End()
	}
	p := req.protocol
	switch {
	case err != nil:
		err = fmt.Errorf("the body is not of kind %s: %w", p.Kind, err)
	case req.kind != p.Kind || !slices.Contains(p.apiVersions, req.APIVersion):
		err = fmt.Errorf("the body has kind %q of apiVersion %q: this handler understands %s of %s",
			req.kind, req.APIVersion, p.Kind, strings.Join(p.apiVersions, " and "))
	case req.Raw == nil:
		err = fmt.Errorf("the %s has no request", p.Kind)
	case req.twice:
		err = fmt.Errorf("the %s has two requests", p.Kind)
	case req.UID == "":
		err = fmt.Errorf("the request of the %s has no uid of up to %d bytes", p.Kind, maxText)
	default:
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

// Begin returns the answer as far as to its response.
func (req *Request) Begin() []byte {
	b := rawjson.AppendQuote(append(req.response[:0], `{"kind":`...), req.protocol.Kind)
	b = rawjson.AppendQuote(append(b, `,"apiVersion":`...), req.APIVersion)
	return append(b, `,"response":`...)
}

// Piece returns an empty buffer with room for n bytes, for one of Pieces.
func (req *Request) Piece(n int) []byte {
	if b := req.protocol.pieces.get(n); b != nil {
		return b
	}
	return make([]byte, 0, n)
}

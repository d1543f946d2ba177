package review_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/review"
)

const question = `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":"u-1","what": 1.0}}`

// protocol answers with the text of the request.
func protocol(answer func(ctx context.Context, req *review.Request) ([]byte, error)) review.Protocol {
	if answer == nil {
		answer = func(_ context.Context, req *review.Request) ([]byte, error) {
			return fmt.Appendf(nil, `{"uid":%q,"echo":%s}`, req.UID, req.Raw), nil
		}
	}
	return reading(func(ctx context.Context, req *review.Request, _ members) ([]byte, error) { return answer(ctx, req) })
}

// reading answers with what a function makes of the members of the request.
func reading(answer func(ctx context.Context, req *review.Request, m members) ([]byte, error)) review.Protocol {
	return review.Protocol{Group: "test.k8s.io", Kind: "TestReview", Answer: func(ctx context.Context, req *review.Request) ([]byte, error) {
		if m := read(req); req.End(nil) != nil {
			return nil, req.End(nil)
		} else if response, err := answer(ctx, req, m); err != nil {
			return nil, err
		} else {
			return append(req.Begin(), response...), nil
		}
	}}
}

// members are a member of a request, and its list.
type members struct {
	desired string   // its text
	objects []string // the texts of its elements
}

func read(req *review.Request) (m members) {
	c := &req.Cursor
	for name := range req.Members {
		switch string(name) {
		case "desired":
			m.desired = string(c.Value())
		case "objects":
			m.objects = nil
			if c.Begins() == 'n' {
				c.Value()
				break
			}
			for c.Enter('['); c.Next('['); {
				m.objects = append(m.objects, string(c.Value()))
			}
		default:
			c.Value()
		}
	}
	return m
}

func withFailure(p review.Protocol) review.Protocol {
	p.Failure = func(req *review.Request, err error) []byte {
		b, err := json.Marshal(struct {
			UID    string `json:"uid"`
			Failed string `json:"failed"`
		}{string(req.UID), err.Error()})
		if err != nil {
			panic(err)
		}
		return b
	}
	return p
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	return send(h, "/", strings.NewReader(body), int64(len(body)))
}

// send posts a body with a Content-Length, which may be wrong.
func send(h http.Handler, target string, body io.Reader, length int64) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, body)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = length
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// After an error, the server of HTTP/2 may still read what a handler has written.
func TestHandler_KeepsBuffersOfFailedWrites(t *testing.T) {
	h := reading(func(_ context.Context, req *review.Request, m members) ([]byte, error) {
		req.Pieces = append(req.Pieces, append(req.Piece(8), m.desired...))
		return []byte(m.desired), nil
	}).Handler()
	text := func(n int) string {
		return fmt.Sprintf(`{"request":{"desired":%d,"uid":"u"},"apiVersion":"test.k8s.io/v1","kind":"TestReview"}`, n)
	}
	for first := 1_000_000; first < 1_000_100; first += 2 { // the race detector drops some buffers of a pool
		w := &failingWriter{httptest.NewRecorder(), nil}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text(first)))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		post(h, text(first+1))
		if got := string(bytes.Join(w.pieces, nil)); !strings.HasPrefix(got, strconv.Itoa(first)) {
			t.Fatalf("the buffer of %d has %.200s after the next request", first, got)
		}
	}
}

// failingWriter keeps the pieces that it gets, and refuses them.
type failingWriter struct {
	http.ResponseWriter
	pieces [][]byte
}

func (w *failingWriter) Write(piece []byte) (int, error) {
	w.pieces = append(w.pieces, piece)
	return 0, errors.New("the stream is closed")
}

// A review is answered in its version, with its UID.
func TestHandler_VersionAndUID(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		w := post(protocol(nil).HandlerIn(1<<20), strings.Replace(question, "/v1", "/"+version, 1))
		want := `{"kind":"TestReview","apiVersion":"test.k8s.io/` + version + `","response":{"uid":"u-1","echo":{"uid":"u-1","what": 1.0}}}`
		if w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("got %d %s, want 200 %s", w.Code, w.Body, want)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("the content type is %q", got)
		}
	}
}

// Bad requests get a status.
func TestHandler_BadRequests(t *testing.T) {
	for name, c := range map[string]struct {
		method, contentType, encoding, body string
		code                                int
		message                             string
	}{
		"a GET":                        {method: "GET", code: 405, message: "method GET is not allowed"},
		"no content type":              {contentType: "-", code: 415, message: `content type "" is not supported`},
		"a wrong content type":         {contentType: "application/yaml", code: 415, message: `content type "application/yaml" is not supported`},
		"a broken content type":        {contentType: "a;b;c", code: 415, message: "is not supported"},
		"a compressed body":            {encoding: "gzip", code: 415, message: `content encoding "gzip" is not supported`},
		"no body":                      {body: "-", code: 400, message: "the body is empty"},
		"a body that is too large":     {body: strings.Repeat(" ", 1<<20+1), code: 413, message: "the review takes at least 1 MiB of memory, and may take 1 MiB"},
		"a body that is no JSON":       {body: "kind: TestReview", code: 400, message: "the body is not of kind TestReview"},
		"a body that is no object":     {body: "[]", code: 400, message: "expected object, got array"},
		"another kind":                 {body: `{"kind":"OtherReview","apiVersion":"test.k8s.io/v1"}`, code: 400, message: `kind "OtherReview" of apiVersion "test.k8s.io/v1": this handler understands TestReview of test.k8s.io/v1 and test.k8s.io/v1beta1`},
		"another version":              {body: strings.Replace(question, "/v1", "/v2", 1), code: 400, message: `apiVersion "test.k8s.io/v2"`},
		"no request":                   {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1"}`, code: 400, message: "has no request"},
		"a request that is null":       {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":null}`, code: 400, message: "has no request"},
		"a request that is no object":  {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":7}`, code: 400, message: "expected object"},
		"two requests":                 {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{},"request":null}`, code: 400, message: "the TestReview has two requests"},
		"a request without a UID":      {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{}}`, code: 400, message: "has no uid"},
		"a request with a long UID":    {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":"` + strings.Repeat("<", 2000) + `"}}`, code: 400, message: "has no uid of up to 1024 bytes"},
		"a request with a numeric UID": {body: `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":1}}`, code: 400, message: "has no uid"},
	} {
		t.Run(name, func(t *testing.T) {
			body := c.body
			switch body {
			case "":
				body = question
			case "-":
				body = ""
			}
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			if c.method != "" {
				r.Method = c.method
			}
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			switch c.contentType {
			case "":
			case "-":
				r.Header.Del("Content-Type")
			default:
				r.Header.Set("Content-Type", c.contentType)
			}
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			w := httptest.NewRecorder()
			withFailure(protocol(nil)).HandlerIn(1<<20).ServeHTTP(w, r)
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
				t.Fatalf("no Status: %v: %s", err, w.Body)
			}
			if w.Code != c.code || int(status.Code) != c.code || status.Kind != "Status" || status.APIVersion != "v1" || status.Status != "Failure" {
				t.Errorf("got %d and %+v, want a Status with %d", w.Code, status, c.code)
			}
			if !strings.Contains(status.Message, c.message) {
				t.Errorf("the message is %q, want %q in it", status.Message, c.message)
			}
		})
	}
}

// A truncated review is answered with its UID.
func TestHandler_TruncatedReview(t *testing.T) {
	body := question[:len(question)-3]
	w := post(withFailure(protocol(nil)).HandlerIn(1<<20), body)
	want := `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","response":{"uid":"u-1","failed":"the body is not of kind TestReview: `
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("got %d %s, want 200 %s…", w.Code, w.Body, want)
	}
	// Where the protocol has no failures, the Status carries both.
	w = post(protocol(nil).HandlerIn(1<<20), body)
	if got := status(t, w); got.Code != 400 || got.Details.UID != "u-1" || reviewVersion(got) != "test.k8s.io/v1" {
		t.Errorf("got %+v, want code 400 and the UID and the version of the question", got)
	}
	// Nothing is made up where the body ends before the value.
	w = post(protocol(nil).HandlerIn(1<<20), question[:strings.Index(question, `:"u-1"`)])
	if got := status(t, w); got.Details.UID != "" {
		t.Errorf("the UID of half a question is %q", got.Details.UID)
	}
}

func status(t *testing.T, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	got := metav1.Status{Details: &metav1.StatusDetails{}}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("no Status: %v: %s", err, w.Body)
	}
	if int(got.Code) != w.Code {
		t.Errorf("the code is %d, and %d in the Status", w.Code, got.Code)
	}
	return got
}

func reviewVersion(s metav1.Status) string {
	for _, c := range s.Details.Causes {
		if c.Type == "ReviewVersion" {
			return c.Message
		}
	}
	return ""
}

// An error is a status with the UID and the version.
func TestHandler_Error(t *testing.T) {
	retry := apierrors.NewServiceUnavailable("the oven is cold")
	retry.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 3}
	for _, c := range []struct {
		err        error
		code       int32
		reason     metav1.StatusReason
		message    string
		retryAfter string
	}{
		{errors.New("out of flour"), 500, metav1.StatusReasonInternalError, "out of flour", ""},
		{fmt.Errorf("wrapped: %w", retry), 503, metav1.StatusReasonServiceUnavailable, "the oven is cold", "3"},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pizzas"}, "x", errors.New("no")), 403, metav1.StatusReasonForbidden, `pizzas "x" is forbidden: no`, ""},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Message: "no code"}}, 500, "", "no code", ""},
		{fmt.Errorf("Pizza x: %w", apierrors.NewBadRequest("too hot")), 400, metav1.StatusReasonBadRequest, "Pizza x: too hot", ""},
		{fmt.Errorf("slow: %w", context.DeadlineExceeded), 504, metav1.StatusReasonTimeout, "slow: context deadline exceeded", ""},
	} {
		w := post(protocol(func(context.Context, *review.Request) ([]byte, error) { return nil, c.err }).HandlerIn(1<<20), question)
		got := status(t, w)
		if got.Code != c.code || got.Reason != c.reason || !strings.Contains(got.Message, c.message) || got.Status != "Failure" {
			t.Errorf("%v became %+v", c.err, got)
		}
		if got.Details.UID != "u-1" || reviewVersion(got) != "test.k8s.io/v1" {
			t.Errorf("%v: the details are %+v, want the UID and the version", c.err, got.Details)
		}
		if after := w.Header().Get("Retry-After"); after != c.retryAfter {
			t.Errorf("%v: Retry-After is %q, want %q", c.err, after, c.retryAfter)
		}
	}
	if retry.ErrStatus.Details.UID != "" {
		t.Error("the author's error was changed")
	}
}

// A panic is an error, and the next request is served.
func TestHandler_Panic(t *testing.T) {
	first := true
	h := withFailure(protocol(func(context.Context, *review.Request) ([]byte, error) {
		if first {
			first = false
			panic("dough everywhere")
		}
		return []byte(`{}`), nil
	})).HandlerIn(1 << 20)
	w := post(h, question)
	if want := `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","response":{"uid":"u-1","failed":"panic: dough everywhere"}}`; w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
	if w = post(h, question); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "failed") {
		t.Errorf("after the panic: %d %s", w.Code, w.Body)
	}
}

// The deadline is a little before the timeout in the query.
func TestHandler_Timeout(t *testing.T) {
	for query, want := range map[string]time.Duration{"?timeout=30s": 29 * time.Second, "?timeout=5s": 4500 * time.Millisecond, "": 0, "?timeout=junk": 0, "?timeout=-1s": 0} {
		var left time.Duration
		h := protocol(func(ctx context.Context, _ *review.Request) ([]byte, error) {
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			}
			return []byte(`{}`), nil
		}).HandlerIn(1 << 20)
		send(h, "/"+query, strings.NewReader(question), int64(len(question)))
		if left > want || left < want-time.Second {
			t.Errorf("%q leaves %s, want %s", query, left, want)
		}
	}
}

// The length that a request names is not believed.
func TestHandler_WrongLength(t *testing.T) {
	w := send(protocol(nil).HandlerIn(1<<20), "/", io.LimitReader(strings.NewReader(question), 20), 900<<10)
	if got := status(t, w); got.Code != 400 {
		t.Errorf("got %+v, want code 400", got)
	}
}

// A review of an unknown version is answered with its UID too.
func TestHandler_UnknownVersion(t *testing.T) {
	w := post(withFailure(protocol(nil)).HandlerIn(1<<20), strings.Replace(question, "/v1", "/v2", 1))
	if got := status(t, w); got.Code != 400 || got.Details.UID != "u-1" || reviewVersion(got) != "test.k8s.io/v2" {
		t.Errorf("got %+v", got)
	}
}

// FuzzHandler checks that any body gets an answer that can be read, and that a
// review which encoding/json can read is answered with its UID.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(question))
	f.Add([]byte(question[:40]))
	f.Add([]byte(`{"request":{"uid":"u\u0041"},"kind":"TestReview","apiVersion":"test.k8s.io/v1beta1"}`))
	f.Add([]byte("{\"kind\":\"TestReview\",\"apiVersion\":\"test.k8s.io/v1\",\"request\":{\"uid\":\"\xd8\"!"))
	f.Add([]byte(`{"request":{"uid":"a","uid":"b"},"kind":"TestReview","apiVersion":"test.k8s.io/v1"}`))
	h := withFailure(protocol(func(_ context.Context, req *review.Request) ([]byte, error) {
		return json.Marshal(map[string]any{"uid": req.UID})
	})).HandlerIn(1 << 30)
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(h, string(body))
		var answer struct {
			Kind, APIVersion string
			Code             int
			Response         struct{ UID string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", body, w.Body, err)
		}
		var asked map[string]json.RawMessage
		var request map[string]json.RawMessage
		var kind, version, uid string
		if json.Unmarshal(body, &asked) != nil || json.Unmarshal(asked["request"], &request) != nil ||
			json.Unmarshal(asked["kind"], &kind) != nil || json.Unmarshal(asked["apiVersion"], &version) != nil ||
			json.Unmarshal(request["uid"], &uid) != nil || kind != "TestReview" || version != "test.k8s.io/v1" || uid == "" {
			return
		}
		// A list that is not one ends the parser, perhaps before the UID.
		if objects := request["objects"]; bytes.Contains(body, []byte{0xff}) || len(objects) > 0 && objects[0] != '[' && objects[0] != 'n' {
			return
		}
		if diff := cmp.Diff([]any{200, "TestReview", version, uid}, []any{w.Code, answer.Kind, answer.APIVersion, answer.Response.UID}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", body, diff)
		}
	})
}

package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// Webhook sends a ConversionReview, as JSON, and returns the response, or an error if the objects
// of the review cannot be converted. An error that wraps [ErrUnreachable] ends [Run]. A Webhook
// must be safe for concurrent use.
type Webhook func(ctx context.Context, review []byte) (answer []byte, err error)

// ErrUnreachable is wrapped by the error of a [Webhook] that cannot be called at all, whatever the
// objects are.
var ErrUnreachable = errors.New("webhook unreachable")

// Handler returns a Webhook that calls an HTTP handler in this process, such as the handler that
// conversion.NewHandler returns. The handler's log is discarded, because the report has the errors.
func Handler(h http.Handler) Webhook {
	return func(ctx context.Context, review []byte) (_ []byte, err error) {
		ctx = klog.NewContext(ctx, logr.Discard())
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(review))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		defer func() {
			if recover() != nil {
				err = io.EOF // net/http closes the connection
			}
		}()
		a := &answer{header: http.Header{}, code: http.StatusOK}
		if h.ServeHTTP(a, request); a.code != http.StatusOK {
			return nil, fmt.Errorf("status %s: %s", http.StatusText(a.code), a.body.Bytes())
		}
		return a.body.Bytes(), nil
	}
}

// answer implements [http.ResponseWriter].
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// meeting is where the objects of a batch wait for their conversion, until all that have not ended
// wait. Then those of one version go into one review, as from a list of the API server.
type meeting struct {
	*rehearsal
	mu      sync.Mutex
	running int // objects that do not wait
	waiting []*question
}

// question is an object to be converted.
type question struct {
	*item
	side     *side
	object   []byte
	to       runtimeschema.GroupVersion
	answered sync.WaitGroup
	answer   []byte
	err      error
}

// call is what the objects of a review have in common.
func (q *question) call() Call {
	from := metav1.TypeMeta{}
	_ = json.Unmarshal(q.object, &from) // it was made of an object
	return Call{
		Kind: q.kind.String(), Release: q.side.release,
		From: runtimeschema.FromAPIVersionAndKind(from.APIVersion, "").Version, To: q.to.Version,
	}
}

// convert waits for the conversion of an object.
func (m *meeting) convert(ctx context.Context, q *question) ([]byte, error) {
	q.answered.Add(1)
	m.mu.Lock()
	m.waiting = append(m.waiting, q)
	m.mu.Unlock()
	m.leave(ctx)
	q.answered.Wait()
	return q.answer, q.err
}

// leave is called by an object that ends or waits. The last one sends what the others wait for.
func (m *meeting) leave(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running--; m.running > 0 || len(m.waiting) == 0 {
		return
	}
	asked := m.waiting
	m.waiting, m.running = nil, len(asked)
	slices.SortFunc(asked, func(a, b *question) int { return a.number - b.number })
	reviews := map[Call][]*question{}
	for _, q := range asked {
		call := q.call()
		reviews[call] = append(reviews[call], q)
	}
	for call, questions := range reviews {
		m.ask(ctx, call, questions)
	}
	for _, q := range asked {
		q.answered.Done()
	}
}

// ask sends a review. If it fails, each half is asked alone, down to the objects that fail.
func (m *meeting) ask(ctx context.Context, call Call, questions []*question) {
	answers, err := review(ctx, questions)
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case errors.Is(err, ErrUnreachable):
		q := questions[0]
		m.abort(fmt.Errorf("rehearse: %s %s (%s): conversion from %s to %s by the %s release: %w", q.kind, q.name, q.where, call.From, call.To, call.Release, err))
	case err != nil && len(questions) > 1:
		half := len(questions) / 2
		m.ask(ctx, call, questions[:half])
		m.ask(ctx, call, questions[half:])
		return
	}
	for i, q := range questions {
		if q.err = err; err == nil {
			q.answer = answers[i].Raw
			m.calls[call]++
		}
	}
}

// review asks the webhook, and checks the answer as the API server does
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// getConvertedObjectsFromResponse).
func review(ctx context.Context, questions []*question) ([]runtime.RawExtension, error) {
	s := questions[0].side
	asked := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: "apiextensions.k8s.io/" + s.reviews},
		Request:  &apiextensionsv1.ConversionRequest{UID: uuid.NewUUID(), DesiredAPIVersion: questions[0].to.String()},
	}
	for _, q := range questions {
		asked.Request.Objects = append(asked.Request.Objects, runtime.RawExtension{Raw: q.object})
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	text, err := s.webhook(ctx, body)
	if err != nil {
		return nil, err
	}
	var got apiextensionsv1.ConversionReview
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, err
	}
	switch response := got.Response; {
	case s.reviews == "v1" && got.TypeMeta != asked.TypeMeta:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", asked.GroupVersionKind(), got.GroupVersionKind())
	case response == nil:
		return nil, errors.New("no response provided")
	case s.reviews == "v1" && response.UID != asked.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, response.UID)
	case response.Result.Status != metav1.StatusSuccess && response.Result.Message != "":
		return nil, errors.New(response.Result.Message)
	case response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", response.Result.Status)
	case len(response.ConvertedObjects) != len(questions):
		return nil, fmt.Errorf("returned %d objects, expected %d", len(response.ConvertedObjects), len(questions))
	}
	return got.Response.ConvertedObjects, nil
}

package rehearse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/crdkit/crdkit/internal/inprocess"
)

// A batch is what the API server's lists have at most by default, in objects; and at most so many
// bytes, which bounds the memory.
const (
	maxBatch      = 500
	maxBatchBytes = 8 << 20
)

// batch is objects of a kind that are rehearsed side by side. If one needs a conversion, it waits until all that have not
// ended wait. Then those of one version go into one review, as from a list of the API server.
type batch struct {
	*rehearsal
	items   []*item
	size    int        // in bytes
	mu      sync.Mutex // of running, and of what the items ask
	running int        // items that neither wait nor have ended
}

// run rehearses the objects.
func (b *batch) run(ctx context.Context) {
	var done sync.WaitGroup
	b.running = len(b.items)
	for _, it := range b.items {
		done.Go(func() {
			defer b.leave(ctx)
			it.run(ctx)
		})
	}
	done.Wait()
	if context.Cause(ctx) == nil { // else, failures may be due to that
		b.merge(b.items)
	}
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
func (b *batch) convert(ctx context.Context, q *question) ([]byte, error) {
	q.answered.Add(1)
	b.mu.Lock()
	q.asks = q
	b.mu.Unlock()
	b.leave(ctx)
	q.answered.Wait()
	return q.answer, q.err
}

// leave is called by an object that ends or waits. The last one sends what the others wait for.
func (b *batch) leave(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running > 0 {
		return
	}
	reviews := map[Call][]*question{}
	for _, it := range b.items {
		if q := it.asks; q != nil {
			it.asks = nil
			b.running++
			reviews[q.call()] = append(reviews[q.call()], q)
		}
	}
	for call, questions := range reviews {
		b.ask(ctx, call, questions)
		for _, q := range questions {
			q.answered.Done()
		}
	}
}

// ask sends a review. If it fails, each half is asked alone, down to the objects that fail.
func (b *batch) ask(ctx context.Context, call Call, questions []*question) {
	answers, err := review(ctx, questions)
	if cause := context.Cause(ctx); cause != nil {
		q := questions[0]
		err = fmt.Errorf("rehearse: %s %s (%s): conversion from %s to %s by the %s release: %w", q.kind, q.name, q.where, call.From, call.To, call.Release, cause)
		b.ended = cmp.Or(b.ended, err)
	} else if err != nil && len(questions) > 1 {
		half := len(questions) / 2
		b.ask(ctx, call, questions[:half])
		b.ask(ctx, call, questions[half:])
		return
	}
	for i, q := range questions {
		if q.err = err; err == nil {
			q.answer = answers[i].Raw
			b.calls[call]++
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
	body, _ := json.Marshal(asked) // the objects are JSON
	text, err := inprocess.Post(ctx, s.handler, s.path, body)
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

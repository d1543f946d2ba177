package admission

import (
	"context"
	"errors"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decision is the outcome of a request.
type Decision string

const (
	// Allowed is a review that is allowed, and changes nothing. A request that passes
	// without a call, such as that for a subresource, is too.
	Allowed Decision = "allowed"
	// Patched is a review that is allowed, with a patch.
	Patched Decision = "patched"
	// Denied is a review that is not allowed: a function denied it, or the object does
	// not fit its Go type.
	Denied Decision = "denied"
	// Undecided is an HTTP error: a function could not judge, or panicked, or the
	// request is not a review that can be answered. The API server tries again or applies
	// the webhook's failurePolicy. See the package documentation.
	Undecided Decision = "undecided"
)

// Observation is the outcome of one request.
//
// Clients can send anything, so that Kind and Operation have only values that are known:
// they may be labels of a metric.
type Observation struct {
	// Kind and version of the object, in the request's version. It is empty if neither
	// the scheme nor a function has the group and kind, and if the request is not a review
	// that can be read. The version alone is empty if neither has that.
	Kind schema.GroupVersionKind
	// Operation of the request. It is empty if it is not one of the four of the API, and
	// if the request is not a review that can be read.
	Operation admissionv1.Operation
	// SubResource is that of the request, such as status, or any other text.
	SubResource string
	// Decision is what was answered. The API server may have stopped waiting.
	Decision Decision
	// Duration is how long the request took, with the reading of its body and the
	// writing of the answer.
	Duration time.Duration
	// Err is nil if the request is allowed, and the API error with the Status that the
	// user sees if it is denied.
	Err error
}

// Observe calls a function with each request after it is answered, also with one
// that is not a review. Package admission/metrics has one for Prometheus. It may be called
// from several goroutines at a time. Several functions are called in their order.
func Observe(f func(Observation)) Option {
	return func(h *handler) {
		if f == nil {
			h.errs = append(h.errs, errors.New("admission: the function of Observe is nil"))
		}
		h.observers = append(h.observers, f)
	}
}

type observationKey struct{}

// observed returns a handler that calls the observers after next.
func (h *handler) observed(next http.Handler) http.Handler {
	if len(h.observers) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		o := &Observation{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), observationKey{}, o)))
		o.Duration = time.Since(start)
		for _, observe := range h.observers { // a panic must not take back the answer
			_ = guard(r.Context(), "the observer", func() error { observe(*o); return nil })
		}
	})
}

// observation returns that of the request, if it has observers.
func observation(ctx context.Context) *Observation {
	o, _ := ctx.Value(observationKey{}).(*Observation)
	return o
}

// noteFailure notes that a request is not decided, whether it was a request or not.
func noteFailure(ctx context.Context, err error) {
	if o := observation(ctx); o != nil {
		o.Decision, o.Err = Undecided, err
	}
}

// note notes what the call is about.
func (c *call) note(ctx context.Context) {
	o := observation(ctx)
	if o == nil {
		return
	}
	o.Kind, o.SubResource = c.handler.known(c.kind), c.subresource
	switch c.operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		o.Operation = c.operation
	}
}

// noteDecision notes what was decided; with a status the request is denied.
func noteDecision(ctx context.Context, status *metav1.Status, patch []byte) {
	o := observation(ctx)
	switch {
	case o == nil:
	case status != nil:
		o.Decision, o.Err = Denied, &apierrors.StatusError{ErrStatus: *status}
	case patch != nil:
		o.Decision = Patched
	default:
		o.Decision = Allowed
	}
}

// known returns what the handler knows of a kind.
func (h *handler) known(kind schema.GroupVersionKind) (known schema.GroupVersionKind) {
	if h.scheme.Recognizes(kind) {
		return kind
	}
	for _, f := range h.functions {
		switch {
		case f.kind == kind:
			return kind
		case f.kind.GroupKind() == kind.GroupKind():
			known.Group, known.Kind = kind.Group, kind.Kind
		}
	}
	return known
}

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
	// Allowed is a review that is allowed without a patch, perhaps because no function is called
	// for it.
	Allowed Decision = "allowed"
	// Patched is a review that is allowed with a patch.
	Patched Decision = "patched"
	// Denied is a review that is not allowed. A function denied it, or the object does not fit
	// its Go type.
	Denied Decision = "denied"
	// Undecided is an HTTP error, because a function failed or panicked, or the request is not a
	// valid review. The API server tries again or applies the webhook's failurePolicy.
	Undecided Decision = "undecided"
)

// Observation is the outcome of one request.
//
// Kind and Operation have only known values, which are safe as labels of a metric, because clients
// can send any request.
type Observation struct {
	// Kind is the kind of the object in the version of the request. It is empty if neither the
	// scheme nor a function has this group and kind, or if the request is not a readable review.
	// Its Version is empty if only the version is unknown.
	Kind schema.GroupVersionKind
	// Operation is the operation of the request. It is empty if it is not CREATE, UPDATE, DELETE
	// or CONNECT, or if the request is not a readable review.
	Operation admissionv1.Operation
	// SubResource is the subresource of the request, such as status. It may be any string that a
	// client sent.
	SubResource string
	// Decision is the response that the handler sent, perhaps after the API server had timed out.
	Decision Decision
	// Duration is the time from the arrival of the request until its response was written,
	// including the time to read the body.
	Duration time.Duration
	// Err is nil if the request is allowed. If it is denied, Err is the API error whose Status
	// the user sees. If it is undecided, Err is the error whose message is in the HTTP error.
	Err error
}

// Observe registers a function that receives an [Observation] of each request, even of one that is
// not a review, after the response. Package admission/metrics has such a function for Prometheus.
//
// The function must be safe for concurrent use. If several Observe options are given, their
// functions are called in the order of the options. A panic of the function is logged, and
// does not change the response. [NewHandler] panics if the function is nil.
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
		h.observe(r.Context(), func(ctx context.Context) { next.ServeHTTP(w, r.WithContext(ctx)) })
	})
}

// observe calls decide, and then the observers.
func (h *handler) observe(ctx context.Context, decide func(context.Context)) {
	start := time.Now()
	o := &Observation{}
	decide(context.WithValue(ctx, observationKey{}, o))
	o.Duration = time.Since(start)
	for _, observe := range h.observers { // a panic must not take back the answer
		_ = guard(ctx, "the observer", func() error { observe(*o); return nil })
	}
}

// observation returns the Observation of the request, or nil without observers.
func observation(ctx context.Context) *Observation {
	o, _ := ctx.Value(observationKey{}).(*Observation)
	return o
}

// noteFailure notes that a request is undecided, even if it is not a review.
func noteFailure(ctx context.Context, err error) {
	if o := observation(ctx); o != nil {
		o.Decision, o.Err = Undecided, err
	}
}

// startObservation notes the object and the operation of a request, and returns the Observation of the
// request, or nil without observers.
func (h *handler) startObservation(ctx context.Context, r *request) *Observation {
	o := observation(ctx)
	if o == nil {
		return nil
	}
	o.Kind, o.SubResource = h.known(r.kind), r.subresource
	switch r.operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		o.Operation = r.operation
	}
	return o
}

// decided notes the decision. With a status, the request is denied.
func (o *Observation) decided(status *metav1.Status, patched bool) {
	switch {
	case o == nil:
	case status != nil:
		o.Decision, o.Err = Denied, &apierrors.StatusError{ErrStatus: *status}
	case patched:
		o.Decision = Patched
	default:
		o.Decision = Allowed
	}
}

// known returns the parts of a kind that the scheme or a function has.
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

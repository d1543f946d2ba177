package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// undecided is why a question has no answer. It wraps nothing: a NotFound or a
// Forbidden of our own request must not be taken for a verdict about the user's.
type undecided struct {
	message string
	code    int           // 429 or 503: the API server may ask again; 0: it need not
	wait    time.Duration // until then; a second, if it is less
	each    time.Duration // longer for each question more that has to wait
}

// unavailable is what the API server may ask again in a second.
func unavailable(format string, args ...any) *undecided {
	return &undecided{message: fmt.Sprintf(format, args...), code: http.StatusServiceUnavailable}
}

// because is what an error keeps from being answered. Only if the error may be gone
// in a moment, the API server shall ask again: else it would wait until its time is
// over, and tell the user that, and not what the matter is.
func because(err error, format string, args ...any) *undecided {
	u := &undecided{message: fmt.Sprintf(format, args...) + ": " + err.Error()}
	var over *tooManyError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &over):
		u.code, u.wait, u.each = http.StatusTooManyRequests, over.wait, over.each
	case errors.As(err, &status):
		switch code := status.Status().Code; {
		case code == http.StatusTooManyRequests:
			u.code = http.StatusTooManyRequests
		case code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
			u.code = http.StatusServiceUnavailable
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			u.wait = time.Duration(seconds) * time.Second
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isNetwork(err):
		u.code = http.StatusServiceUnavailable
	}
	return u
}

// isNetwork says whether an API server was not reached, and may be in a moment.
func isNetwork(err error) bool {
	return utilnet.IsTimeout(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

// at returns the same with the field that it is about.
func (u *undecided) at(path *field.Path) *undecided {
	if u == nil {
		return nil
	}
	there := *u
	there.message = path.String() + ": " + u.message
	return &there
}

// err returns the error that leaves a request undecided; see package admission.
func (u *undecided) err() error {
	reason := metav1.StatusReasonServiceUnavailable
	switch u.code {
	case 0:
		return errors.New(u.message)
	case http.StatusTooManyRequests:
		reason = metav1.StatusReasonTooManyRequests
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    int32(u.code),
		Reason:  reason,
		Message: u.message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: int32(max(1, min(int64((u.wait+time.Second-1)/time.Second), 1<<31-1)))},
	}}
}

// worst returns one for all, of which there is at least one: the first that asking
// again would not help; else the first, with the time that all of them need.
func worst(all []*undecided) *undecided {
	one := *all[0]
	var each, more time.Duration
	for _, u := range all {
		if u.code == 0 {
			return u
		}
		one.wait = max(one.wait, u.wait)
		each = max(each, u.each)
		more += u.each
	}
	one.wait += more - each
	return &one
}

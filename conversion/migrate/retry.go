package migrate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// requestTimeout is how long a request may take: the API server's own limit, and some.
	requestTimeout = 90 * time.Second
	// patience is how long the API server may be away.
	patience = time.Minute
	// maxAnswers is how often it may answer that something went wrong. Who waits for a webhook
	// for longer can run again.
	maxAnswers = 5
)

// unreachableError says that the API server has not answered for some time.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string {
	return fmt.Sprintf("the API server has not answered for %s: %v", patience, e.err)
}
func (e *unreachableError) Unwrap() error { return e.err }

// insist calls f, which sends a request, when the rate allows it, and again while it fails
// for reasons that may pass. client-go waits by itself where the API server says for how long
// (Retry-After).
func (m *migrator) insist(ctx context.Context, f func() error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 5 * time.Second}
	begin, answers := time.Now(), 0
	for {
		if err := m.limiter.Wait(ctx); err != nil {
			return err
		}
		err := f()
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		if answered(err) {
			if answers++; answers == maxAnswers {
				return err
			}
		} else if time.Since(begin) > patience {
			return &unreachableError{err}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff.Step()):
		}
	}
}

// answered says whether an error is an answer of the API server.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// transient says whether the same request may succeed later, without anybody having
// changed the object.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	switch code := status.Status().Code; code {
	case http.StatusNotFound:
		return !absent(err)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

// absent says whether the API server has looked for an object, and it is not there. An API
// server that has not heard of a version yet, or a proxy, answers with a 404 too, but not with
// a Status; client-go makes one of it.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

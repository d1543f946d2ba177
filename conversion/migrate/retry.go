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
	"k8s.io/klog/v2"
)

const (
	// requestTimeout is how long a request may take: the API server's own limit, and some.
	requestTimeout = 90 * time.Second
	// patience is how long the API server may be away.
	patience = time.Minute
	// maxAnswers is how often it may answer that something went wrong: for six seconds or so, in
	// which a webhook can be replaced. Run again to wait for longer.
	maxAnswers = 7
	// maxPageAnswers is the same for a page which could be smaller.
	maxPageAnswers = 2
	// retryLog is the least time between two retries that are logged.
	retryLog = 5 * time.Second
)

// unreachableError reports that the API server has not answered for some time.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string {
	return fmt.Sprintf("the API server has not answered for %s: %v", patience, e.err)
}
func (e *unreachableError) Unwrap() error { return e.err }

// insist calls f, which sends a request, when the rate allows it. It calls f again after
// temporary failures, and logs some of them. client-go itself waits if the API server sends Retry-After.
func (m *migrator) insist(ctx context.Context, f func() error) error {
	return m.insistFor(ctx, maxAnswers, f)
}

// insistFor is insist with another limit of failed answers.
func (m *migrator) insistFor(ctx context.Context, maxAnswers int, f func() error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 5 * time.Second}
	answers := 0
	var silent time.Time // since when there has been no answer
	for {
		if err := m.limiter.Wait(ctx); err != nil {
			// Wait returns an error at once if the context would be done too early.
			<-ctx.Done()
			return ctx.Err()
		}
		err := f()
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		switch {
		case answered(err):
			silent = time.Time{}
			if answers++; answers >= maxAnswers {
				return err
			}
		case silent.IsZero():
			silent = time.Now()
		case time.Since(silent) > patience:
			return &unreachableError{err}
		}
		m.retries.Do(func() {
			klog.FromContext(ctx).Info("A request failed and is sent again", "customResourceDefinition", m.name, "err", err)
		})
		if err := pause(ctx, backoff.Step()); err != nil {
			return err
		}
	}
}

// pause waits for d. It returns an error if the context is done before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// answered reports whether an error is an answer of the API server.
func answered(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

// transient reports whether the same request may succeed later, without a change
// of the object.
func transient(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err != nil
	}
	switch code := status.ErrStatus.Code; code {
	case http.StatusNotFound:
		return !absent(err)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

// absent reports whether the API server has looked for an object and not found it. A proxy,
// or an API server that does not know a version yet, also answers 404, but without a
// Status; then client-go makes one.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

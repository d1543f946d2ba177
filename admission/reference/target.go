package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Target is a kind to which others refer, and how to find out whether one of its
// objects exists. It serves any number of [Exists], which share its limits.
type Target struct {
	resource Resource
	informer lookup
	reads    *live[cache.ObjectName, bool]
}

// NewTarget returns the kind of which the informer holds the objects. The getter
// confirms what the informer does not know (see [Metadata]); it is called within
// the limits of the options.
//
// The error joins all faults of the arguments; or it is that of the informer, for
// one that has no store and takes no event handler.
func NewTarget(resource Resource, informer Informer, get Getter, opts ...LiveOption) (*Target, error) {
	l := limits{timeout: 2 * time.Second, concurrency: 10, qps: 20, burst: 100}
	for _, opt := range opts {
		opt(&l)
	}
	errs := []error{check(informer), l.check()}
	if resource.resource.Empty() {
		errs = append(errs, errors.New("the resource is empty"))
	}
	if get == nil {
		errs = append(errs, errors.New("the getter is nil"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reference: target %s: %w", resource, err)
	}
	known, err := newLookup(informer)
	if err != nil {
		return nil, fmt.Errorf("reference: target %s: %w", resource, err)
	}
	return &Target{resource: resource, informer: known, reads: newLive(l, func(ctx context.Context, name cache.ObjectName) (bool, error) {
		err := get(ctx, name.Namespace, name.Name)
		if isMissing(err) {
			return false, nil
		}
		return err == nil, err
	})}, nil
}

// isMissing says whether an error means that an object does not exist. Where the
// whole resource is not served, the API server answers 404 too, for every name.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// HasSynced says whether the informer knows the objects that were there when it
// started.
func (t *Target) HasSynced() bool { return t.informer.HasSynced() }

// Check returns an error until the informer has synced. It is a check of
// webhook.Checks.
func (t *Target) Check(*http.Request) error {
	if !t.HasSynced() {
		return notSynced(t.resource.String())
	}
	return nil
}

// knows says whether the informer knows an object. It is an error if that cannot
// be said.
func (t *Target) knows(name cache.ObjectName) (bool, error) {
	if !t.HasSynced() {
		return false, notSynced(t.resource.String())
	}
	found, err := t.informer.has(name)
	if err != nil {
		return false, unavailable("looking up %s %q: %v", t.resource, name, err)
	}
	return found, nil
}

// read says whether an object exists, by a live read.
func (t *Target) read(ctx context.Context, name cache.ObjectName) (bool, error) {
	found, err := t.reads.do(ctx, name)
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, errTooMany):
		return false, tooMany("cannot find out whether %s %q exists: %v", t.resource, name, err)
	default:
		return false, unavailable("cannot find out whether %s %q exists: %v", t.resource, name, err)
	}
}

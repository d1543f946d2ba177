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
	source   source
	informer lookup
	reads    *live[cache.ObjectName, bool]
	selects  bool // see NewSelectorTarget
}

// NewTarget returns the kind of which the informer holds the objects. The getter
// confirms what the informer does not know (see [Metadata]); it is called within
// the limits of the options.
//
// The error joins all faults of the arguments; or it is that of the informer, for
// one that has no store and takes no event handler.
func NewTarget(resource Resource, informer Informer, get Getter, opts ...RequestOption) (*Target, error) {
	return newTarget(resource, informer, get, opts, newLookup)
}

func newTarget(resource Resource, informer Informer, get Getter, opts []RequestOption, newLookup func(Informer) (lookup, func() bool, error)) (*Target, error) {
	l := limits{timeout: 2 * time.Second, concurrency: 10, qps: 20, burst: 100}.with(opts)
	errs := []error{check(informer), l.check()}
	if resource.resource.Empty() {
		errs = append(errs, errors.New("the resource is empty"))
	}
	if get == nil {
		errs = append(errs, errors.New("the getter is nil"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reference: %s: %w", resource.target(), err)
	}
	known, hasSynced, err := newLookup(informer)
	if err != nil {
		return nil, fmt.Errorf("reference: %s: %w", resource.target(), err)
	}
	source := newSource(resource.String(), informer, hasSynced)
	return &Target{resource: resource, source: source, informer: known, reads: newLive(l, func(ctx context.Context, name cache.ObjectName) (bool, error) {
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
// started. If it has stopped, it does not.
func (t *Target) HasSynced() bool { return t.source.ready() == nil }

// Check returns an error until the informer has synced, and again when it has
// stopped. It is a check of webhook.Checks.
func (t *Target) Check(*http.Request) error {
	if u := t.source.ready(); u != nil {
		return u.err()
	}
	return nil
}

// knows says whether the informer knows an object, or why that cannot be said.
func (t *Target) knows(name cache.ObjectName) (bool, *undecided) {
	if u := t.source.ready(); u != nil {
		return false, u
	}
	found, err := t.informer.has(name)
	if err != nil {
		return false, because(err, "looking up %s %q", t.resource, name)
	}
	return found, nil
}

// read says by a live read whether an object exists, or why that cannot be said.
func (t *Target) read(ctx context.Context, name cache.ObjectName) (bool, *undecided) {
	found, err := t.reads.do(ctx, name)
	if err != nil {
		return false, because(err, "cannot find out whether %s %q exists", t.resource, name)
	}
	return found, nil
}

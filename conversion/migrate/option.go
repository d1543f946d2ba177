package migrate

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// Option configures [Run] and [Remove].
type Option func(*settings)

type settings struct {
	rate               float64
	propagationDelay   time.Duration
	observe            func(Progress)
	dryRun             bool
	pruneManagedFields bool
}

// Rate limits the requests per second, including lists. The default is 100. With Rate(0), only API
// Priority and Fairness limits the requests. Rate replaces the QPS of the config.
//
// An object takes two requests, or one if the CRD has a status subresource and the object's
// managedFields contain only the storage version.
func Rate(perSecond float64) Option {
	return func(s *settings) { s.rate = perSecond }
}

// PropagationDelay sets how long Run waits before it starts, if the CRD was changed in this time or in
// the ten minutes before it, or if the time of the last change is unknown. The default is 70
// seconds. With [DryRun], Run does not wait. Remove ignores this option.
//
// Until an API server has seen a change of the storage version, it stores objects in the old
// version. A request in progress at that moment, which for example waits for an admission webhook,
// may do so until it ends within the API server's --request-timeout, by default 60 seconds
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, tearDown).
//
// If the delay is too short, an object can remain in the old version unnoticed, so that no object
// of the resource can be listed after that version has been removed.
func PropagationDelay(d time.Duration) Option {
	return func(s *settings) { s.propagationDelay = d }
}

// Observe registers a function that is called with the progress of Run, or of Remove with
// [PruneManagedFields]. The function is called at most ten times a second, and at the end. Calls do not
// overlap, and the migration waits for them. If several Observe options are given, their functions are
// called in the order of the options.
func Observe(f func(Progress)) Option {
	return func(s *settings) {
		before := s.observe
		s.observe = func(p Progress) { before(p); f(p) }
	}
}

// DryRun lets [Run] and [Remove] change nothing in the cluster. Run sends its patches with
// dryRun=All, so that the report contains the objects that admission webhooks or validation would
// refuse. Remove only checks whether it could remove the version.
func DryRun() Option {
	return func(s *settings) { s.dryRun = true }
}

// PruneManagedFields lets Remove remove a version that managedFields of objects still contain, after it
// has removed the entries of the version from them. The fields keep their values, but the managers
// in these entries no longer own the fields:
//
//   - If such a manager applies a configuration without a field, server-side apply no
//     longer removes the field.
//   - Other managers get no conflicts over these fields.
//
// A manager that uses server-side apply keeps its fields if you first let it apply once in another
// version. A manager that uses update cannot move to another version.
//
// If the entries stayed, up to v1.36 each server-side apply of the object would fail, and any other
// write would drop all its managedFields.
//
// Only requests for the resource itself can write managedFields, so admission is called. If it
// would refuse or change an object, Remove leaves the object unchanged, and does not remove the
// version. An object takes two requests.
func PruneManagedFields() Option {
	return func(s *settings) { s.pruneManagedFields = true }
}

func apply(opts []Option) (settings, error) {
	set := settings{rate: 100, propagationDelay: 70 * time.Second, observe: func(Progress) {}}
	for _, opt := range opts {
		opt(&set)
	}
	var errs []error
	if !(set.rate >= 0) {
		errs = append(errs, fmt.Errorf("migrate: Rate is %v, expected 0 or more", set.rate))
	}
	if set.propagationDelay < 0 {
		errs = append(errs, fmt.Errorf("migrate: PropagationDelay is %s, expected 0 or more", set.propagationDelay))
	}
	return set, errors.Join(errs...)
}

// limiter returns the limiter of the requests.
func (s settings) limiter() flowcontrol.RateLimiter {
	if s.rate == 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(s.rate), max(1, int(s.rate/10)))
}

package migrate

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// Option changes how [Run] and [Remove] work.
type Option func(*settings)

type settings struct {
	rate             float64
	propagationDelay time.Duration
	observe          func(Progress)
	dryRun           bool
	forgetOwners     bool
}

// Rate is how many requests a second are sent at most, lists included; the default is 100.
// With 0 the API server alone sets the pace (API Priority and Fairness). An object takes
// two requests; one if the definition has a status subresource, and its managedFields name
// no old version. It takes the place of the QPS in the config.
func Rate(perSecond float64) Option {
	return func(s *settings) { s.rate = perSecond }
}

// PropagationDelay is how long Run waits before it begins, if the definition has been changed in the
// last ten minutes or it cannot tell; the default is 70 seconds. Until all API servers of a
// cluster have heard of a new storage version, some store objects in the old one; and a
// request that was on its way then, such as one that waits for an admission webhook, is
// stored in the old one even later, until the API server's --request-timeout, by default 60
// seconds (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, tearDown). An
// object that comes after a shorter wait stays in the old version unseen; once that is
// removed, no object of the resource can be listed. It concerns Run.
func PropagationDelay(d time.Duration) Option {
	return func(s *settings) { s.propagationDelay = d }
}

// Observe gets to know how far Run is, or Remove with ForgetOwners: f is called up to ten times
// a second, and at the end; never twice at the same time. The work waits for it.
func Observe(f func(Progress)) Option {
	return func(s *settings) { s.observe = f }
}

// DryRun only says what would happen. Run then patches with dryRun=All, which admission
// webhooks and validation see as any other request, so that what they would refuse is
// known before. Remove checks whether it could.
func DryRun() Option {
	return func(s *settings) { s.dryRun = true }
}

// ForgetOwners lets Remove take a version out that managedFields still name: these entries
// are first taken out of all objects. The fields stay as they are, but these owners lose
// them: server-side apply by one of them does not remove any more what it has left out of its
// configuration, and there are no conflicts over these fields. An owner by apply need not
// lose anything: it moves to another version by applying once in that. An owner by update
// cannot move.
//
// They must go, because the API server cannot convert to a version that is not there. If it
// was removed with them, then up to v1.36 each server-side apply to such an object fails,
// and each other write drops all of its managedFields.
//
// managedFields can be written through the resource itself alone, so admission is asked; an
// object that it would refuse or change is left alone, and the version stays. An object takes
// two requests.
func ForgetOwners() Option {
	return func(s *settings) { s.forgetOwners = true }
}

func apply(opts []Option) (settings, error) {
	set := settings{rate: 100, propagationDelay: 70 * time.Second}
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

// limiter returns what limits requests.
func (s settings) limiter() flowcontrol.RateLimiter {
	if s.rate == 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(s.rate), max(1, int(s.rate/10)))
}

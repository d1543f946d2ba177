package registration

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// askPace is how often a replica asks whether it may claim.
	askPace = 200 * time.Millisecond
	// takeOver is how long the rules of another declaration hold before a replica that
	// could serve its own concludes that those who have registered them are gone.
	takeOver = 5 * time.Minute
)

// ReconcileOption changes what [Webhooks.Reconcile] does.
type ReconcileOption func(*reconciler)

// ClaimWhen has a replica replace rules that another declaration has registered only when
// ready returns true: when this replica could serve the requests that its own rules bring.
// Until then it does as a replica of an older release: it repairs the CA bundle in the rules
// that are there, and [Webhooks.Check] passes if they carry it. Where nobody has registered
// anything, everything is written at once; if some of the declaration's objects have been
// registered before this replica, what is missing beside them waits, too, since it may be
// what this release adds. Without this option, everything is written at once.
//
// ready is called five times a second until it has returned true, never twice at a time. It
// must be quick. See "Several replicas, and rolling updates" in the package documentation.
func ClaimWhen(ready func() bool) ReconcileOption {
	return func(r *reconciler) { r.ready = ready }
}

// isReady says whether this replica may replace what others have registered.
func (r *reconciler) isReady() bool {
	if r.ready != nil && r.ready() {
		r.ready = nil
	}
	return r.ready == nil
}

// registered says whether somebody else has registered a part of the declaration, or may
// have, as long as not all of it has been read.
func (r *reconciler) registered(now time.Time) bool {
	r.webhooks.mu.Lock()
	defer r.webhooks.mu.Unlock()
	for _, l := range r.lives {
		if !l.seen && l.unread == nil {
			return true
		}
		if l.current == nil {
			continue
		}
		// What it has written into the rules of others is their CA bundle alone.
		if digest := claimOf(l.current, now).digest; digest != "" && (digest != l.digest || !l.written) {
			return true
		}
	}
	return false
}

// claimOf returns the claim on an object of the cluster.
func claimOf(obj *unstructured.Unstructured, now time.Time) claim {
	return parseClaim(obj.GetAnnotations()[DeclaredAnnotation], now)
}

// standing says how this replica stands to what is registered of an object.
type standing int

const (
	ours    standing = iota // the object shall be as this replica declares it
	theirs                  // the declaration of others holds
	pending                 // it is not there yet, and must not be before this replica is ready
)

// stand decides whose declaration of an object holds, and with which claim ours is written.
// found is the claim on the object as it is; first says that it has not been looked at before;
// absent says that nothing is registered there yet, so that the first to write it brings new
// requests.
func (r *reconciler) stand(l *live, found claim, first, absent bool, now time.Time) (standing, claim) {
	switch {
	case found.digest == l.digest:
		if found.time != 0 {
			l.claim = found
		}
		return ours, l.claim
	case found.time == 0:
		if absent && r.ready != nil && r.registered(now) {
			return pending, l.claim
		}
		return ours, l.claim
	}
	if first {
		l.claim = l.claim.after(found)
	}
	if r.ready != nil {
		l.rival = claim{}
		return theirs, l.claim
	}
	if l.claim.beats(found) {
		return ours, l.claim
	}
	if l.rival != found {
		l.rival, l.rivalSince = found, now
	}
	if now.Sub(l.rivalSince) >= r.takeOver {
		return ours, claim{now.UnixNano(), l.digest}.after(found)
	}
	l.takeOverAt = l.rivalSince.Add(r.takeOver)
	return theirs, l.claim
}

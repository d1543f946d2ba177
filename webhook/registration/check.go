package registration

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

var errNotRunning = errors.New("registration: Reconcile does not run")

// Check returns nil if all objects in the cluster are registered as they are declared, or as
// another declaration says which holds, and carry the CA bundle. What waits for [ClaimWhen]
// is no fault: the replica is to become ready. It is a check for /readyz, and makes no
// request: it tells what [Webhooks.Reconcile] has seen last.
func (w *Webhooks) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lives == nil {
		return errNotRunning
	}
	var faults []error
	for _, l := range w.lives {
		if l.problem != nil {
			faults = append(faults, fmt.Errorf("registration: %s: %w", l.object, l.problem))
		}
	}
	return errors.Join(faults...)
}

// Carry returns nil if every webhook that is registered carries all certificates of a PEM
// bundle: then no API server that has seen the registration refuses a serving certificate
// which one of them has signed. It makes no request: it tells what [Webhooks.Reconcile] has
// seen last.
func (w *Webhooks) Carry(pem []byte) error {
	certs, err := certificates(pem)
	if err != nil {
		return fmt.Errorf("registration: the CA bundle: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lives == nil {
		return errNotRunning
	}
	var faults []error
	for _, l := range w.lives {
		if err := l.carry(certs); err != nil {
			faults = append(faults, fmt.Errorf("registration: %s: %w", l.object, err))
		}
	}
	return errors.Join(faults...)
}

func (l *live) carry(certs []string) error {
	switch {
	case l.pending:
		return nil
	case !l.seen:
		return errUnread
	case l.current == nil && l.empty:
		return nil
	case l.current == nil:
		return errors.New("it is not in the cluster")
	}
	bundles := map[string][]byte{}
	for _, e := range entriesOf(l.current.Object) {
		bundles[e.name] = e.caBundle()
	}
	entries := entriesOf(l.declared)
	found := claimOf(l.current, time.Now())
	if found.digest != "" && found.digest != l.digest { // but those of another release
		theirs := owned(l.current, l.manager)
		switch {
		case theirs != nil:
			entries = entriesOf(theirs.Object)
		case !l.isDefinition() || !l.empty: // or else another operator converts it
			return errors.New("nobody knows what another release has registered of it")
		}
	}
	for _, e := range entries {
		if carries(bundles[e.name], certs) {
			continue
		}
		if e.name == "" {
			return errors.New("it does not carry the certificates")
		}
		return fmt.Errorf("webhook %s does not carry the certificates", e.name)
	}
	return nil
}

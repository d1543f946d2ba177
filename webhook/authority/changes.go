package authority

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/report"
)

// fieldManager is the field manager of the writes of all replicas.
const fieldManager = "crdkit-authority"

// The reasons of [Authority.Changes].
const (
	caCreated         = "CACreated"
	caRotationStarted = "CARotationStarted"
	caRotated         = "CARotated"
	caRemoved         = "CARemoved"
	secretRecreated   = "SecretRecreated"
	secretRepaired    = "SecretRepaired"
	unknownCA         = "UnknownCA"
)

// step is what a replica did after a read of the Secret.
type step struct {
	hosts  []string
	obj    *corev1.Secret // that was read, or nil
	theirs *state         // in obj, nil if there is no whole one
	known  *state         // with which this replica served, or nil at its start
	mine   *state         // known, or nil if it is outdated
	wants  *state         // with which it serves now; it has been written if it is not theirs
}

// report reports a step. The UID is that of the Secret after it.
func (a *Authority) report(ctx context.Context, s step, uid types.UID, now time.Time) {
	for _, c := range s.changes(now) {
		a.changes.Report(ctx, a.client, uid, c)
	}
	same := s.known != nil && s.known.current.cert.Equal(s.wants.current.cert) && bytes.Equal(s.known.bundle(), s.wants.bundle())
	if s.wants == s.theirs && !same {
		a.used.Do(func() { klog.FromContext(ctx).Info("Using the CA in the Secret", s.wants.values()...) })
	}
}

// changes returns the changes that this replica made, and the CAs that it trusts although no replica
// made them. Other replicas report their own changes.
func (s step) changes(now time.Time) (all []report.Change) {
	add := func(reason, message string, warning error, values ...any) {
		all = append(all, report.Change{Reason: reason, Message: message, Warning: warning, Values: append(values, s.wants.values()...)})
	}
	for _, u := range s.unknown() {
		add(unknownCA, "Trusting a CA that no replica has signed", errUnknown, "fingerprint", fingerprint(u.cert), "fieldManagers", s.managers(u.key))
	}
	if s.wants == s.theirs {
		return all
	}
	before, broken := &state{}, error(nil)
	if s.obj != nil {
		before, broken = parseState(s.obj.Data, s.hosts...)
	}
	if s.known != nil && (s.theirs == nil || !follows(s.mine, s.theirs, now)) {
		before = s.known
	}
	lost := s.known != nil || s.obj != nil && slices.ContainsFunc(keys[:], func(key string) bool { return len(s.obj.Data[key]) > 0 })
	switch {
	case s.obj == nil && s.known != nil:
		add(secretRecreated, "Wrote the Secret again, because it was deleted", nil)
	case broken != nil && lost:
		add(secretRepaired, "Restored the Secret", broken, "fieldManagers", s.managers(keys[:]...))
	case before == s.known && !slices.ContainsFunc(s.unknown(), func(u planted) bool { return u.key == certKey }):
		add(secretRepaired, "Restored the Secret", errEarlier, "fieldManagers", s.managers(certKey))
	}
	switch current, next := s.wants.current.cert, s.wants.next; {
	case !before.trusts(current) && lost:
		add(caCreated, "Created a CA", errNoCA)
	case !before.trusts(current):
		add(caCreated, "Created a CA", nil)
	case before.current != nil && !current.Equal(before.current.cert):
		add(caRotated, "Rotated the CA: the next CA signs all new certificates", nil)
	case next != nil && !before.trusts(next.cert):
		add(caRotationStarted, "Started a rotation: added the next CA to the bundle", nil)
	}
	if removed := slices.DeleteFunc(before.trusted(), s.wants.trusts); len(removed) > 0 {
		add(caRemoved, "Removed previous CAs from the bundle", nil, "removed", fingerprints(removed...))
	}
	return all
}

var (
	errUnknown = errors.New("another program wrote the CA, and can impersonate the webhooks, unless this replica missed several rotations")
	errEarlier = errors.New("the Secret had an earlier or an expired CA, for example from a backup")
	errNoCA    = errors.New("no valid CA was left; requests fail until all registrations have the new one")
)

// planted is a CA that no replica has made, and the key of the Secret that has it.
type planted struct {
	cert *x509.Certificate
	key  string
}

// unknown returns the CAs of the Secret that this replica adopts without a sign that a replica made
// them. At its start, a replica knows no CA, and trusts those that it finds. Later, a replica signs
// each CA that it adds with the key of the one before, which a program that does not have the key
// cannot do. The name of a field manager is not such a sign, because each client chooses its own.
func (s step) unknown() (all []planted) {
	if s.known == nil || s.theirs == nil {
		return nil
	}
	signers := []*ca{s.known.current}
	if s.known.next != nil {
		signers = append(signers, s.known.next)
	}
	check := func(c *ca, key string) {
		switch {
		case c == nil || s.known.trusts(c.cert) || !s.wants.trusts(c.cert):
		case c.cross != nil && slices.ContainsFunc(signers, func(by *ca) bool { return c.cross.CheckSignatureFrom(by.cert) == nil }):
			signers = append(signers, c) // this replica may have missed a rotation
		default:
			all = append(all, planted{c.cert, key})
		}
	}
	check(s.theirs.current, certKey)
	check(s.theirs.next, nextCertKey)
	for _, cert := range s.theirs.previous {
		check(&ca{cert: cert}, previousKey)
	}
	return all
}

// managers returns the field managers that wrote keys of the Secret.
func (s step) managers(keys ...string) []string {
	var paths []fieldpath.Path
	for _, key := range keys {
		paths = append(paths, fieldpath.MakePathOrDie("data", key))
	}
	return report.Managers(s.obj, paths...)
}

// values describes the CAs of a state for the log.
func (s *state) values() []any {
	values := []any{"current", fingerprint(s.current.cert), "expires", utc(s.current.cert.NotAfter)}
	if s.next != nil {
		values = append(values, "next", fingerprint(s.next.cert))
	}
	return append(values, "trusted", len(s.trusted()))
}

// fingerprint returns the SHA-256 fingerprint of a certificate in the format of openssl x509
// -fingerprint -sha256.
func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

func fingerprints(certs ...*x509.Certificate) (all []string) {
	for _, cert := range certs {
		all = append(all, fingerprint(cert))
	}
	return all
}

// Changes yields how often this replica changed the Secret, or adopted a CA, for package
// webhook/metrics. The kind is Secret, the name is that of the Secret, and the package
// documentation lists the reasons.
func (a *Authority) Changes(yield func(kind, name, reason string, total int)) {
	a.changes.Totals(yield)
}

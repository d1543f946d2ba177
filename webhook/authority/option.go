package authority

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Option changes how an [Authority] works.
type Option func(*Authority)

// CALifetime sets the lifetime of a CA, which API servers trust until it expires, even after a
// rotation. The default is 90 days. CALifetime must exceed [RotateAfter] by at least the time for a
// rotation, [PropagationDelay] plus four times the time between two reads of the Secret.
//
// Serving certificates are valid for a day, or for an eighth of CALifetime if that is shorter, and
// are renewed after half of that time.
func CALifetime(d time.Duration) Option { return func(a *Authority) { a.caLifetime = d } }

// RotateAfter sets the age at which a rotation to the next CA begins. The default is half of
// [CALifetime]. A rotation begins earlier if the CA, which another program may have created, has
// reached half of its own lifetime.
func RotateAfter(d time.Duration) Option { return func(a *Authority) { a.rotateAfter = d } }

// BundlePropagated sets a function that returns nil when every registration has the certificates of
// the CA bundle. The next CA becomes the current CA only after the function has returned nil for
// [PropagationDelay], and without this option, after PropagationDelay.
//
// The function is called at each read of the Secret while there is a next CA. Calls do not overlap,
// and should be fast. An error that persists for many minutes is logged.
func BundlePropagated(propagated func(bundle []byte) error) Option {
	return func(a *Authority) { a.propagated = propagated }
}

// PropagationDelay sets how long every registration must have had the next CA before a replica
// serves with it, because API servers see a changed registration through a watch, after some time.
// The delay begins again when a replica restarts. The default is one minute. Zero is only for
// tests.
//
// The Secret is read after watch events, and every five seconds, or twice in PropagationDelay if that is
// shorter, but not more often than every half second.
func PropagationDelay(d time.Duration) Option { return func(a *Authority) { a.propagationDelay = d } }

// PolicyRules returns the minimal rules of a Role for an authority, in the namespace of the
// Secret. Do not put them into a ClusterRole. The create rule, also for Events, has no resource name,
// because RBAC does not know the name when an object is created; registration.Guard restricts the
// creation of Secrets. A watch with the field selector metadata.name is authorized by that name
// (apiserver/pkg/endpoints/request/requestinfo.go).
func PolicyRules(secret string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "events"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update", "watch"}},
	}
}

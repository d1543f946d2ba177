package authority

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Option changes how an authority works.
type Option func(*Authority)

// CALifetime is for how long a CA is valid, and trusted: also after another one has
// followed it. The default is 90 days. It must leave time for a rotation after
// [RotateAfter]: the time of [PropagationDelay], and four times that of [Interval].
func CALifetime(d time.Duration) Option { return func(a *Authority) { a.caLifetime = d } }

// RotateAfter is the age at which a CA is followed by the next one. The default
// is half of [CALifetime]. A CA from outside is followed after half of
// its own life, should that be earlier.
func RotateAfter(d time.Duration) Option { return func(a *Authority) { a.rotateAfter = d } }

// CertificateLifetime is for how long a serving certificate is valid. It is
// renewed after half of it. The default is a day.
func CertificateLifetime(d time.Duration) Option { return func(a *Authority) { a.leafLifetime = d } }

// Interval is how often the Secret is looked at, if a watch does not say before that
// it has changed; after a failure it is sooner. A request may take as long, and 15 seconds in
// any case. The default is five seconds.
func Interval(d time.Duration) Option { return func(a *Authority) { a.interval = d } }

// BundlePropagated makes the next CA wait until propagated returns nil: every registration with
// the API server has the certificates of a CA bundle. It is called at each look while
// there is a next CA, never twice at a time, and should not take long; its error is
// logged if it stays for many minutes. Without it, the next CA waits for [PropagationDelay] alone.
func BundlePropagated(propagated func(bundle []byte) error) Option {
	return func(a *Authority) { a.propagated = propagated }
}

// PropagationDelay is how long every registration must have had the next CA before
// a replica serves with it: API servers learn of a new registration through a watch. It
// begins again when a replica restarts. The default is a minute; zero is for tests.
func PropagationDelay(d time.Duration) Option { return func(a *Authority) { a.propagationDelay = d } }

// PolicyRules returns the least that an authority needs for the Secret of a name: the rules of
// a Role in its namespace. RBAC knows no name yet when an object is created; a watch of one
// object by the field selector metadata.name is authorized with that name
// (apiserver/pkg/endpoints/request/requestinfo.go).
func PolicyRules(secret string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update", "watch"}},
	}
}

package authority

import "time"

// Option changes how an authority works.
type Option func(*Authority)

// CALifetime is for how long a CA is valid, and how long after its last
// certificate it may be trusted at most. The default is 90 days.
func CALifetime(d time.Duration) Option { return func(a *Authority) { a.caLifetime = d } }

// RotateAfter is the age at which a CA is followed by the next one. The default
// is half of [CALifetime].
func RotateAfter(d time.Duration) Option { return func(a *Authority) { a.rotateAfter = d } }

// CertificateLifetime is for how long a serving certificate is valid. It is
// renewed after half of it. The default is a day.
func CertificateLifetime(d time.Duration) Option { return func(a *Authority) { a.leafLifetime = d } }

// Interval is how often the Secret is looked at, if a watch does not say before that
// it has changed. The default is 15 seconds.
func Interval(d time.Duration) Option { return func(a *Authority) { a.interval = d } }

// CarriedBy makes the next CA wait until carried returns nil: it says that a CA
// bundle, or more, is in every registration with the API server. Without it,
// what waits is [Settle] alone.
func CarriedBy(carried func(bundle []byte) error) Option {
	return func(a *Authority) { a.carried = carried }
}

// Settle is how long every registration must have carried the next CA before
// a replica serves with it: API servers learn of a new registration through a watch. The
// default is a minute.
func Settle(d time.Duration) Option { return func(a *Authority) { a.settle = d } }

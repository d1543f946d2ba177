package replica

import (
	"context"
	"net/http"

	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
)

// Option changes how [Run] works.
type Option func(*replica)

// Certificates sets the source of the certificates, such as [webhook.Files], instead of a CA in a
// Secret. The bundle has the CA certificates that the API server should trust, such as
// [registration.BundleFile], or is nil if another program writes the CA bundle, such as
// cert-manager's cainjector.
//
// The Ready methods become readiness checks: "certificate" and "ca-bundle".
func Certificates(certs interface {
	webhook.Certificates
	Ready(*http.Request) error
}, bundle registration.Bundle) Option {
	return func(r *replica) { r.certs, r.bundle = certs, bundle }
}

// Trust adds CA certificates that the API server trusts, besides those of the certificates that the
// replica serves with. As long as the bundle is empty or invalid, [Run] writes no CA bundle, not even
// after a rotation of the replica's own CA, which waits until the API server trusts the next CA. The
// readiness check "ca-bundle" includes the bundle.
//
// With Trust and [TrustAuthority], an operator changes from certificates in files to its own CA, or
// back, and no request fails. Each line is a release, and each rollout ends before the next one begins.
// On the way back, the order is reversed:
//
//	replica.Certificates(certs, bundle)
//	replica.Certificates(certs, bundle), replica.TrustAuthority()
//	replica.Trust(bundle)
//	no option
//
// During the first and the last rollout, one release wants one CA more than the other, so the CRDs are
// written up to a few times a minute, which closes watches of their objects.
func Trust(bundle registration.Bundle) Option {
	return func(r *replica) { r.trusted = append(r.trusted, bundle) }
}

// TrustAuthority adds the CA of the authority to the CA certificates that the API server trusts, while
// the replica serves with [Certificates], which is required. [Run] also runs the authority. See [Trust].
func TrustAuthority() Option {
	return func(r *replica) { r.trustAuthority = true }
}

// Authority adds options for the authority that keeps the CA in a Secret. The Secret has the name
// of the registration with the suffix "-webhook", and is in the operator's namespace
// ([registration.Webhooks.Namespace]), or in the namespace default if [registration.URL] is set
// without [registration.OwnNamespace].
func Authority(opts ...authority.Option) Option {
	return func(r *replica) { r.options = append(r.options, opts...) }
}

// Metrics adds a function that registers metrics of the certificates, the CA bundle and the
// registration. Run calls it once before the replica starts, and returns its error. For
// Prometheus, use package webhook/metrics, which this package does not import:
//
//	replica.Metrics(func(status webhook.Status) error { return metrics.Prometheus(registry, status) })
func Metrics(register func(status webhook.Status) error) Option {
	return func(r *replica) { r.measures = append(r.measures, register) }
}

// Server adds options of [webhook.Serve]. The default of [webhook.ShutdownDelay] is five
// seconds here.
func Server(opts ...webhook.Option) Option {
	return func(r *replica) { r.server = append(r.server, opts...) }
}

// Handle adds a handler on the same port, for example for /metrics. The pattern is that of an
// [http.ServeMux], and [Run] panics like [http.ServeMux.Handle] if it conflicts with /healthz,
// /readyz or the path of a webhook.
func Handle(pattern string, h http.Handler) Option {
	return func(r *replica) { r.mux.Handle(pattern, h) }
}

// Ready adds a check to /readyz. Run returns an error if two checks have the same name.
func Ready(name string, check func(*http.Request) error) Option {
	return func(r *replica) { r.check(name, check) }
}

// Informer adds an informer, which [Run], and not you, starts when the API server can convert its
// objects, and stops after the last request has been answered. Its readiness check in /readyz has
// the name with the prefix "informer-".
func Informer(name string, i cache.SharedInformer) Option {
	return func(r *replica) {
		r.informers = append(r.informers, &informer{SharedInformer: i, name: name})
	}
}

// Controller adds a function that [Run] calls when all informers have synced. Its context is done
// when the context of Run is done, and Run waits until the function has returned. If the function
// returns an error before its context is done, the replica stops; if it returns nil, the replica
// continues.
func Controller(run func(context.Context) error) Option {
	return func(r *replica) { r.controllers = append(r.controllers, run) }
}

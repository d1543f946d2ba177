package replica

import (
	"context"
	"net/http"

	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
)

// Option changes what Run does.
type Option func(*replica)

// Certificates takes the certificates from somewhere else, such as [webhook.Files], instead
// of a CA in a Secret. The bundle is what the API server shall trust
// ([registration.BundleFile]), nil if another program writes it, such as cert-manager's
// cainjector. Should certs have a method Run(context.Context) error, it is run; should they
// have Check(*http.Request) error, it is asked for readiness; so is the bundle's.
func Certificates(certs webhook.Certificates, bundle registration.Bundle) Option {
	return func(r *replica) { r.certs, r.bundle = certs, bundle }
}

// Authority changes how the CA is kept. Its Secret is in the operator's own namespace
// ([registration.Webhooks.Namespace]), and has the name of the registration and "-webhook".
func Authority(opts ...authority.Option) Option {
	return func(r *replica) { r.authority = append(r.authority, opts...) }
}

// Metrics has a function register metrics of the certificates and the CA bundle that the
// replica serves with, and of the registration, once, before it starts. Its error is one of Run.
// For Prometheus it is that of package webhook/metrics, which this package does not import:
//
//	replica.Metrics(func(certs webhook.Certificates) error { return metrics.Prometheus(registry, certs) })
func Metrics(register func(certs webhook.Certificates) error) Option {
	return func(r *replica) { r.measures = append(r.measures, register) }
}

// Server changes how requests are served. [webhook.ShutdownDelay] has another
// default here: five seconds.
func Server(opts ...webhook.Option) Option {
	return func(r *replica) { r.server = append(r.server, opts...) }
}

// Handle serves something else on the same port, such as /metrics. The pattern is
// one of [http.ServeMux], other than /healthz, /readyz and the paths of the webhooks: Run
// panics where two patterns conflict, as [http.ServeMux.Handle] does.
func Handle(pattern string, h http.Handler) Option {
	return func(r *replica) { r.mux.Handle(pattern, h) }
}

// Ready adds a check to /readyz.
func Ready(name string, check func(*http.Request) error) Option {
	return func(r *replica) { r.check(name, check) }
}

// Informer is run when the API server can convert what it lists. It must not have been
// started. It stops after the last request has been answered. The name is that of the
// check in /readyz, with "informer-" before it.
func Informer(name string, i cache.SharedInformer) Option {
	return func(r *replica) {
		r.informers = append(r.informers, &informer{SharedInformer: i, name: name})
	}
}

// Controller runs a function when the replica is ready; its context ends with that of
// Run, and Run waits for it. An error that it returns before stops the replica.
func Controller(run func(context.Context) error) Option {
	return func(r *replica) { r.controllers = append(r.controllers, run) }
}

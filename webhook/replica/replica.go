package replica

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
)

// replica is one call of Run.
type replica struct {
	hooks *registration.Webhooks
	certs interface { // if nil, the authority issues them
		webhook.Certificates
		Ready(*http.Request) error
	}
	bundle      registration.Bundle
	trusted     []registration.Bundle // of Trust and TrustAuthority
	options     []authority.Option
	server      []webhook.Option
	mux         *http.ServeMux
	checks      webhook.Checks // of /readyz
	measures    []func(webhook.Status) error
	informers   []*informer
	controllers []func(context.Context) error
	errs        []error

	trustAuthority bool
	authority      *authority.Authority // or nil

	unconverted *unconverted
	registered  atomic.Bool
	ready       atomic.Bool
}

// pace is the interval at which a step checks whether the previous step is done.
const pace = 50 * time.Millisecond

// Run runs a replica until the context is done, and then returns nil. It serves the webhooks,
// /healthz and /readyz on the listener, and writes the CA bundle into the registrations at the API
// server of config. The package documentation describes the order of the steps.
//
// Run returns an error in these cases, and always closes the listener:
//
//   - Options are invalid. The error joins all mistakes.
//   - The replica cannot start.
//   - A part of the replica stopped before the context was done.
func Run(ctx context.Context, config *rest.Config, l net.Listener, hooks *registration.Webhooks, opts ...Option) error {
	r := &replica{hooks: hooks, server: []webhook.Option{webhook.ShutdownDelay(5 * time.Second)}}
	if err := r.prepare(config, opts); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	// These functions run until ctx is done.
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	run := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("replica: %s stopped: %w", what, err))
				stop()
			}
		})
	}
	run("the registration", func(ctx context.Context) error { return r.hooks.Inject(ctx, config, r.bundle) })
	for _, control := range r.controllers {
		run("a controller", func(ctx context.Context) error {
			if !await(ctx, r.ready.Load) {
				return nil
			}
			return control(ctx)
		})
	}
	if r.authority != nil {
		r.server = append(r.server, webhook.RunAlongside(r.authority.Run))
	}
	err := webhook.Serve(ctx, l, r.mux, provisional{r.certs, sync.OnceValues(selfSigned)}, append(r.server, webhook.RunAlongside(r.inform))...)
	stop()
	running.Wait()
	return errors.Join(append([]error{err}, failed...)...)
}

// provisional serves a certificate that nobody trusts until there is another one: the kubelet, which verifies none, would
// otherwise restart a replica that waits for the API server.
type provisional struct {
	webhook.Certificates
	own func() (*tls.Certificate, error)
}

func (p provisional) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c, err := p.Certificates.GetCertificate(hello); err == nil {
		return c, nil
	}
	return p.own()
}

// selfSigned makes a certificate.
func selfSigned() (*tls.Certificate, error) {
	text, key, err := cert.GenerateSelfSignedCertKey("provisional", nil, nil)
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(text, key)
	return &own, err
}

// prepare applies the options and the defaults, and returns all mistakes.
func (r *replica) prepare(config *rest.Config, opts []Option) (err error) {
	r.mux, r.checks = http.NewServeMux(), webhook.Checks{}
	for _, path := range r.hooks.Paths() {
		r.mux.Handle(path, r.hooks)
	}
	r.mux.Handle("/healthz", webhook.Checks{})
	r.mux.Handle("/readyz", r.checks)
	r.check("registration", r.checkRegistration)
	r.check("shutdown", webhook.ShutdownCheck)
	for _, opt := range opts {
		opt(r)
	}
	if slices.Contains(r.trusted, nil) {
		r.errorf("Trust: the bundle is nil, expected the CA certificates to trust")
	}
	if r.trustAuthority && r.certs == nil {
		r.errorf("TrustAuthority: add Certificates, or remove TrustAuthority, because a replica without Certificates already serves with the authority")
	}
	if r.certs == nil || r.trustAuthority {
		r.addAuthority(config)
	}
	r.check("certificate", r.certs.Ready)
	if len(r.trusted) > 0 {
		if r.bundle == nil {
			r.errorf("Trust and TrustAuthority: pass the CA bundle of the certificates to Certificates")
		} else {
			r.bundle = bundles(append([]registration.Bundle{r.bundle}, r.trusted...))
		}
	}
	if r.bundle != nil && r.bundle != registration.Bundle(r.authority) {
		r.check("ca-bundle", r.bundle.Ready)
	}
	if r.unconverted, err = newUnconverted(config); err != nil {
		r.errorf("the client configuration: %w", err)
	}
	for _, i := range r.informers {
		if err := i.listen(); err != nil {
			r.errorf("informer %s: %w", i.name, err)
		}
		r.check("informer-"+i.name, i.check(r.unconverted.found.Load))
	}
	if len(r.errs) == 0 { // otherwise the metrics of a replica that never starts would stay registered
		for _, register := range r.measures {
			if err := register(r.status()); err != nil {
				r.errorf("the metrics: %w", err)
			}
		}
	}
	return errors.Join(r.errs...)
}

// addAuthority adds the authority, which issues the certificates, unless they come from elsewhere.
func (r *replica) addAuthority(config *rest.Config) {
	namespace := cmp.Or(r.hooks.Namespace(), metav1.NamespaceDefault)
	a, err := authority.New(config, namespace, r.hooks.Name()+"-webhook", r.hooks.Hosts(),
		append([]authority.Option{authority.BundlePropagated(r.hooks.CheckBundle)}, r.options...)...)
	if err != nil {
		r.errorf("%w", err)
	}
	r.authority = a
	if r.certs == nil {
		r.certs, r.bundle = a, a
	} else {
		r.trusted = append(r.trusted, a)
	}
}

// status returns what metrics show.
func (r *replica) status() webhook.Status {
	s := webhook.Status{
		Certificates: r.certs,
		Differences: func(yield func(kind, name, field string)) {
			for _, d := range r.hooks.Differences() {
				yield(d.Kind, d.Name, d.Field)
			}
		},
		Changes: func(yield func(kind, name, reason string, total int)) {
			r.hooks.Changes(yield)
			if r.authority != nil {
				r.authority.Changes(yield)
			}
		},
	}
	if r.bundle != nil {
		s.CABundle = r.bundle.CABundle
	}
	return s
}

func (r *replica) errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("replica: "+format, args...))
}

// check adds a readiness check.
func (r *replica) check(name string, check func(*http.Request) error) {
	if r.checks[name] != nil {
		r.errorf("check %q is given twice", name)
	}
	r.checks[name] = check
}

// checkRegistration passes once the registration has been right, even if it breaks later.
func (r *replica) checkRegistration(req *http.Request) error {
	if r.registered.Load() {
		return nil
	}
	return r.hooks.Ready(req)
}

// inform runs the informers until ctx is done. It starts them when the API server can call
// this replica.
func (r *replica) inform(ctx context.Context) error {
	if !await(ctx, func() bool { return r.hooks.Ready(nil) == nil }) {
		return nil
	}
	r.registered.Store(true)
	var running sync.WaitGroup
	for _, i := range r.informers {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	defer running.Wait()
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	running.Go(func() { r.unconverted.watch(asking, r.hooks.Converted()) })
	for _, i := range r.informers {
		if !await(ctx, i.HasSynced) {
			return nil
		}
	}
	stopAsking()
	klog.FromContext(ctx).V(1).Info("The replica is ready", "webhooks", r.hooks.Name())
	r.ready.Store(true)
	return nil
}

// await returns true when the condition holds, or false when the context is done.
func await(ctx context.Context, condition func() bool) bool {
	return wait.PollUntilContextCancel(ctx, pace, true, func(context.Context) (bool, error) { return condition(), nil }) == nil
}

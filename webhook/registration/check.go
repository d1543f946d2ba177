package registration

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// Check is for readiness, one of webhook.Checks: it returns an error while the API server cannot
// call this replica as it is declared. That is so for each object
//
//   - that cannot be read, or is declared and not in the cluster;
//   - in which no webhook leads to this operator, such as a definition with strategy None;
//   - in which a webhook that leads to this operator does not have the CA certificates;
//   - that is a definition whose conversion leads to this operator, which does not declare any:
//     whatever it answered, objects could not be read.
//
// Other [Webhooks.Differences] are no error: in a rolling update, the manifests of the next
// release differ from what the replicas of this one declare, which are to serve on, and to be
// started again. It makes no request: what [Webhooks.Inject] has seen last counts. The request may
// be nil.
func (w *Webhooks) Check(*http.Request) error {
	return w.each((*injector).unreachable)
}

// CheckBundle returns nil if every webhook in the cluster that leads to this operator has all
// certificates of a PEM bundle: then no API server that has seen these webhooks refuses a
// serving certificate which one of them has signed. It makes no request: what [Webhooks.Inject]
// has seen last counts.
func (w *Webhooks) CheckBundle(pem []byte) error {
	if _, err := cert.ParseCertsPEM(pem); err != nil {
		return fmt.Errorf("registration: CA bundle: %w", err)
	}
	return w.each(func(_ *injector, _ *objectState, current *unstructured.Unstructured) error {
		return w.untrusted(current, pem)
	})
}

// Differences returns where the objects of the cluster are not as this release declares them, in
// the order of the manifests; nil while [Webhooks.Inject] does not run. An object that has not been
// read is passed over.
func (w *Webhooks) Differences() (all []Difference) {
	_ = w.each(func(_ *injector, s *objectState, current *unstructured.Unstructured) error {
		all = append(all, w.differences(s.object, current)...)
		return nil
	})
	return all
}

// each calls check for each object as the cluster has it, and joins the errors.
func (w *Webhooks) each(check func(in *injector, s *objectState, current *unstructured.Unstructured) error) error {
	w.mu.Lock()
	in := w.injector
	w.mu.Unlock()
	if in == nil {
		return errNotRunning
	}
	var errs []error
	for _, s := range in.states {
		current, err := s.current()
		if err == nil {
			err = check(in, s, current)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("registration: %s: %w", s.object, err))
		}
	}
	return errors.Join(errs...)
}

// unreachable returns why the API server cannot call this replica by an object, nil if there is
// none: see [Webhooks.Check].
func (in *injector) unreachable(s *objectState, current *unstructured.Unstructured) error {
	leads := len(in.webhooks.entries(current)) > 0
	if declared := s.declared != nil; !leads && declared || leads && !declared && s.kind == definitionKind {
		return joined(in.webhooks.differences(s.object, current))
	}
	pem, err := in.caBundle()
	if err != nil || pem == nil || !leads {
		return err
	}
	if err := in.webhooks.untrusted(current, pem); err != nil {
		if failure := s.failure.Load(); failure != nil && *failure != nil {
			err = fmt.Errorf("%w: %w", err, *failure)
		}
		return err
	}
	return nil
}

// entries returns those that lead to this operator.
func (w *Webhooks) entries(current *unstructured.Unstructured) (entries []entry) {
	if current == nil {
		return nil
	}
	for _, e := range entriesOf(current.Object) {
		if w.endpoint.contains(e.clientConfig) {
			entries = append(entries, e)
		}
	}
	return entries
}

// untrusted returns an error if a webhook that leads to this operator lacks one of the
// certificates.
func (w *Webhooks) untrusted(current *unstructured.Unstructured, pem []byte) error {
	for _, e := range w.entries(current) {
		if !trusts(e.caBundle(), pem) {
			return fmt.Errorf("%s.clientConfig.caBundle does not have the operator's CA certificates", e.field)
		}
	}
	return nil
}

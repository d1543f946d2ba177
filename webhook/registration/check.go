package registration

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"

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
// Other [Webhooks.Differences] are not errors: in a rolling update, the manifests of the next
// release differ from what the replicas of this one declare, which are to serve on, and to be
// started again. It makes no request: what [Webhooks.Inject] has seen last counts. The request may
// be nil.
func (w *Webhooks) Check(*http.Request) error {
	return w.each(func(s *objectState) error { return s.unreachable })
}

// CheckBundle returns nil if every webhook in the cluster that leads to this operator has all
// certificates of a PEM bundle: then no API server that has seen these webhooks refuses a
// serving certificate which one of them has signed. Like Check, it makes no request.
func (w *Webhooks) CheckBundle(pem []byte) error {
	return w.each(func(s *objectState) error {
		if !s.read {
			return s.unreachable
		}
		return w.untrusted(s.current, pem)
	})
}

// Differences returns where the objects of the cluster are not as this release declares them, in
// the order of the manifests; nil while [Webhooks.Inject] does not run. An object that has not been
// read is passed over.
func (w *Webhooks) Differences() (all []Difference) {
	_ = w.each(func(s *objectState) error {
		all = append(all, s.differences...)
		return nil
	})
	return all
}

// each calls check for what was found last of each object, and joins the errors.
func (w *Webhooks) each(check func(*objectState) error) error {
	states := w.states.Load()
	if states == nil {
		return errNotRunning
	}
	var errs []error
	for _, s := range *states {
		s.mu.Lock()
		if err := check(s); err != nil {
			errs = append(errs, fmt.Errorf("registration: %s: %w", s.object, err))
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// entries returns those that lead to this operator.
func (w *Webhooks) entries(obj *unstructured.Unstructured) (entries []entry) {
	if obj == nil {
		return nil
	}
	for _, e := range entriesOf(obj.Object) {
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
			return fmt.Errorf("%s.clientConfig.caBundle lacks the operator's CA certificates", e.field)
		}
	}
	return nil
}

// trusts reports whether a bundle has all certificates of another.
func trusts(bundle, pem []byte) bool {
	found, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false
	}
	wanted, err := cert.ParseCertsPEM(pem)
	return err == nil && !slices.ContainsFunc(wanted, func(c *x509.Certificate) bool { return !slices.ContainsFunc(found, c.Equal) })
}

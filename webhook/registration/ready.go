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

// Ready returns an error while the API server cannot call the webhooks of this replica as
// declared. Use it as one of webhook.Checks for readiness. The request may be nil.
//
// Ready makes no requests, but uses the objects that [Webhooks.Inject] read last, and returns an
// error if Inject is not running. It returns an error for each webhook configuration, and each CRD
// with several versions,
//
//   - that Inject has not read yet,
//   - that is declared with webhooks, but is not in the cluster,
//   - that is declared with webhooks, but has none that points to this operator, such as a
//     CRD with the strategy None,
//   - in which a webhook that points to this operator lacks a CA certificate of the [Bundle],
//     or the [Bundle] has no certificates, or
//   - that is a CRD whose conversion points to this operator, although no conversion is declared
//     for it, so that the API server cannot read its objects in other versions. Remove the
//     conversion from the CRD, or declare it.
//
// If Inject has no Bundle, Ready does not check CA certificates.
//
// Other [Webhooks.Differences] are not errors, because replicas of the old release must still
// serve, and be able to start, when the manifests of the new release are applied.
func (w *Webhooks) Ready(*http.Request) error {
	return w.each(func(s *objectState) error { return s.unreachable })
}

// CheckBundle returns an error unless every webhook in the cluster that points to this operator has
// all certificates of a PEM bundle. If it returns nil, API servers trust certificates that a CA in
// pem has signed once they have read the updated objects. Like [Webhooks.Ready], CheckBundle makes
// no requests.
func (w *Webhooks) CheckBundle(pem []byte) error {
	return w.each(func(s *objectState) error {
		if !s.read {
			return s.unreachable
		}
		return w.untrusted(s.current, pem)
	})
}

// Differences returns the fields in which the objects of the cluster differ from the
// declaration, in the order of the manifests. It returns nil if [Webhooks.Inject] is not
// running. Objects that have not been read are skipped.
func (w *Webhooks) Differences() (all []Difference) {
	_ = w.each(func(s *objectState) error {
		all = append(all, s.differences...)
		return nil
	})
	return all
}

// Changes yields how often [Webhooks.Inject] wrote the CA bundle into each object, for package
// webhook/metrics, with the reasons in the package documentation.
func (w *Webhooks) Changes(yield func(kind, name, reason string, total int)) {
	for _, o := range w.objects {
		if o.watched {
			o.changes.Totals(yield)
		}
	}
}

// each calls check for the last state of each object, and joins the errors.
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

// entries returns the webhooks of an object that point to this operator.
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

// untrusted returns an error if a webhook that points to this operator lacks one of the
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
	found, _ := cert.ParseCertsPEM(bundle)
	wanted, err := cert.ParseCertsPEM(pem)
	return err == nil && !slices.ContainsFunc(wanted, func(c *x509.Certificate) bool { return !slices.ContainsFunc(found, c.Equal) })
}

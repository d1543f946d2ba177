package replica

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook/registration"
)

// bundles is the CA bundle of several sources.
type bundles []registration.Bundle

// CABundle returns the certificates of all sources, in the same order whatever the order of the sources:
// replicas of two releases must not overwrite each other's bundle. As long as a source has nothing, or
// no valid certificates, it returns what that source has, which is not written: a bundle without one of
// the CAs would make requests fail.
func (all bundles) CABundle() []byte {
	var certs []*x509.Certificate
	for _, b := range all {
		source := b.CABundle()
		found, err := cert.ParseCertsPEM(source)
		if err != nil {
			return source
		}
		certs = append(certs, found...)
	}
	slices.SortFunc(certs, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	bundle, _ := cert.EncodeCertificates(slices.CompactFunc(certs, (*x509.Certificate).Equal)...) // to memory
	return bundle
}

// Ready returns the errors of all sources.
func (all bundles) Ready(r *http.Request) error {
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Ready(r))
	}
	return errors.Join(errs...)
}

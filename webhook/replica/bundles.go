package replica

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook/registration"
)

// bundles is the CA bundle of several sources.
type bundles []registration.Bundle

// CABundle returns the certificates of all sources, in the same order whatever the order of the sources:
// replicas of two releases must not overwrite each other's bundle. It returns nothing as long as a
// source has nothing, because a bundle without one of the CAs would make requests fail.
func (all bundles) CABundle() []byte {
	var certs []*x509.Certificate
	for _, b := range all {
		found, err := cert.ParseCertsPEM(b.CABundle())
		if err != nil {
			return nil
		}
		certs = append(certs, found...)
	}
	slices.SortFunc(certs, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	var bundle []byte
	for _, c := range slices.CompactFunc(certs, (*x509.Certificate).Equal) {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})...)
	}
	return bundle
}

// Check returns the errors of all sources that have a check.
func (all bundles) Check(req *http.Request) error {
	var errs []error
	for _, b := range all {
		if c, ok := b.(checker); ok {
			errs = append(errs, c.Check(req))
		}
	}
	return errors.Join(errs...)
}

type checker interface{ Check(*http.Request) error }

package authority

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The keys of the Secret's data.
const (
	bundleKey   = "ca.crt" // all trusted CAs, derived from the other keys, for users and tools
	certKey     = "tls.crt"
	privateKey  = "tls.key"
	nextCertKey = "next.crt"
	nextKeyKey  = "next.key"
	previousKey = "previous.crt"
	maxPrevious = 16 // CAs before the current one that are still trusted
)

// keys are the keys of this package. Other keys in the Secret are preserved.
var keys = [...]string{bundleKey, certKey, privateKey, nextCertKey, nextKeyKey, previousKey}

// state is the content of the Secret.
type state struct {
	current  *ca                 // signs
	next     *ca                 // is trusted, and will sign; may be nil
	previous []*x509.Certificate // are trusted until they expire
}

// parseState reads the data of the Secret, whose CAs must be able to sign certificates for the hosts. If this package would
// not have written a part so, it returns an error and the other parts; current may then be nil.
func parseState(data map[string][]byte, hosts ...string) (*state, error) {
	var errs []error
	s := &state{}
	var err error
	if s.current, err = parseCA(data[certKey], data[privateKey], hosts); err != nil {
		errs = append(errs, fmt.Errorf("%s and %s: %w", certKey, privateKey, err))
	}
	if len(data[nextCertKey])+len(data[nextKeyKey]) > 0 {
		if s.next, err = parseCA(data[nextCertKey], data[nextKeyKey], hosts); err != nil {
			errs = append(errs, fmt.Errorf("%s and %s: %w", nextCertKey, nextKeyKey, err))
		}
	}
	if s.previous, err = parseCertificates(data[previousKey]); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", previousKey, err))
	}
	if len(errs) == 0 && !bytes.Equal(data[bundleKey], s.bundle()) {
		errs = append(errs, fmt.Errorf("%s differs from the certificates of all CAs in the Secret", bundleKey))
	}
	return s, errors.Join(errs...)
}

// encode returns the data of the Secret: values for the keys of this package.
func (s *state) encode() map[string][]byte {
	data := map[string][]byte{bundleKey: s.bundle()}
	data[certKey], data[privateKey] = s.current.encode()
	if s.next != nil {
		data[nextCertKey], data[nextKeyKey] = s.next.encode()
	}
	if len(s.previous) > 0 {
		data[previousKey] = encodeCertificates(s.previous...)
	}
	return data
}

// trusted returns the certificates of all CAs, in an order that a rotation does not change.
func (s *state) trusted() []*x509.Certificate {
	certs := slices.Clone(s.previous)
	for _, c := range []*ca{s.current, s.next} {
		if c != nil {
			certs = append(certs, c.cert)
		}
	}
	slices.SortFunc(certs, func(a, b *x509.Certificate) int {
		return cmp.Or(a.NotBefore.Compare(b.NotBefore), bytes.Compare(a.Raw, b.Raw))
	})
	return slices.CompactFunc(certs, (*x509.Certificate).Equal)
}

// bundle returns the CA certificates that the API server must trust, as PEM.
func (s *state) bundle() []byte { return encodeCertificates(s.trusted()...) }

// trusts reports whether a CA is in the bundle.
func (s *state) trusts(cert *x509.Certificate) bool {
	return slices.ContainsFunc(s.trusted(), cert.Equal)
}

// retire adds a certificate to the previous ones, and keeps the newest. If there are too many,
// no replica has served with the oldest for many rotations.
func (s *state) retire(cert *x509.Certificate) {
	if !slices.ContainsFunc(s.previous, cert.Equal) {
		s.previous = append(slices.Clip(s.previous), cert)
	}
	s.previous = s.previous[max(0, len(s.previous)-maxPrevious):]
}

// valid reports whether a certificate is valid at a time.
func valid(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
}

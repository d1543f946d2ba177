package webhook

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/crdkit/crdkit/internal/reload"
)

// Certificates supplies the certificate for each TLS handshake. It may change
// from one to the next.
type Certificates interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// FileCertificates serves the certificate of a pair of files, and follows their
// changes. See [Files].
type FileCertificates struct {
	certFile string
	pair     *reload.Files[*tls.Certificate]
}

// Files returns the certificate in a pair of PEM files; certFile may hold a
// chain after the certificate itself. The error says why the files cannot be
// read now, or do not belong together.
//
// A handshake reads the files again, at most once a second, so that a renewed
// certificate is served without a restart. It does not matter how the files
// change: in place, by a rename, or by the swap of a symbolic link, as
// Kubernetes does it in a volume. While the new content is broken, the last good
// certificate is served, and [FileCertificates.Check] reports what is wrong.
func Files(certFile, keyFile string) (*FileCertificates, error) {
	pair, err := reload.New(func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
		}
		return &pair, nil
	}, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("webhook: serving certificate: %w", err)
	}
	return &FileCertificates{certFile, pair}, nil
}

// GetCertificate returns the certificate to serve.
func (f *FileCertificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.pair.Value(), nil
}

// Check is one of [Checks]: it returns an error if the files hold no certificate that
// could be served now, or one that has expired or is not valid yet. The request may be
// nil.
func (f *FileCertificates) Check(*http.Request) error {
	pair, err := f.pair.Check()
	if err != nil {
		return fmt.Errorf("webhook: serving certificate: %w", err)
	}
	if leaf, now := pair.Leaf, time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("webhook: serving certificate: %s is valid from %s to %s", f.certFile, leaf.NotBefore, leaf.NotAfter)
	}
	return nil
}

// TLSConfig returns the configuration with which Serve listens: TLS 1.3 alone, which
// every supported API server speaks, HTTP/2 and HTTP/1.1, and a certificate that may
// change at each handshake.
//
// It is for servers other than Serve, such as an [http.Server] of the caller's, and may
// be changed: for no HTTP/2, set NextProtos to "http/1.1" alone. Where a configuration
// cannot be given but only changed, as in the TLSOpts of controller-runtime's webhook
// server, copy MinVersion, NextProtos and GetCertificate; and with VerifyClients, also
// ClientAuth, SessionTicketsDisabled and VerifyConnection. Certificates stays empty: else
// crypto/tls takes the first of those for a client that names no server.
func TLSConfig(certs Certificates, opts ...Option) *tls.Config {
	return apply(opts).tlsConfig(certs)
}

func (set settings) tlsConfig(certs Certificates) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: certs.GetCertificate,
	}
	if set.clients != nil {
		set.clients.require(config)
	}
	return config
}

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/crdkit/crdkit/internal/reload"
)

// Certificates supplies the certificate for each TLS handshake, which may change from call to call.
// GetCertificate must be safe for concurrent use.
type Certificates interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// FileCertificates serves the certificate in a pair of files, and reloads changed files. See
// [Files].
type FileCertificates struct {
	certFile string
	pair     *reload.Files[*tls.Certificate]
}

// Files returns the certificate in a pair of PEM files. certFile may have intermediate
// certificates after the certificate. Files returns an error if the files cannot be read, or
// do not belong together.
//
// Handshakes read the files again, at most once a second, so that a renewed certificate is served
// without a restart. The files may change in place, by a rename, or by the swap of a symbolic link,
// as in a Kubernetes volume. While the new content is invalid, the last valid certificate is
// served, and [FileCertificates.Ready] returns an error.
func Files(certFile, keyFile string) (*FileCertificates, error) {
	pair, err := reload.New(func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err == nil {
			err = reload.Complete(contents[0])
		}
		if err == nil { // clients parse the whole chain
			_, err = x509.ParseCertificates(slices.Concat(pair.Certificate...))
		}
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

// GetCertificate returns the last valid certificate. The error is always nil.
func (f *FileCertificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.pair.Value(), nil
}

// Ready is a check for [Checks]. It returns an error if the files cannot be read or do not
// belong together, or if the certificate has expired or is not valid yet. The request may be
// nil.
func (f *FileCertificates) Ready(*http.Request) error {
	pair, err := f.pair.Check()
	if err != nil {
		return fmt.Errorf("webhook: serving certificate: %w", err)
	}
	if leaf, now := pair.Leaf, time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("webhook: serving certificate: %s is valid from %s to %s", f.certFile, leaf.NotBefore, leaf.NotAfter)
	}
	return nil
}

// TLSConfig returns the TLS configuration of [Serve] for other servers, such as your own
// [http.Server]. It allows only TLS 1.3, which every supported API server speaks, and HTTP/2
// and HTTP/1.1. It gets the certificate of each handshake from certs. Of the options, only
// [VerifyClients] takes effect.
//
// You may change the configuration: to disable HTTP/2, set NextProtos to "http/1.1" alone. For a
// server that only allows changes of its own configuration, like TLSOpts in controller-runtime's
// webhook server, copy these fields:
//
//   - MinVersion, NextProtos and GetCertificate
//   - with VerifyClients, also ClientAuth, SessionTicketsDisabled and VerifyConnection
//
// Leave the field Certificates empty, because crypto/tls serves the first certificate in it to
// clients that send no server name.
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

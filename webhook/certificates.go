package webhook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Certificates supplies the certificate for each TLS handshake. It may change
// from one to the next.
type Certificates interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// recheck is how long a certificate from files is served without another look.
const recheck = time.Second

// FileCertificates serves the certificate of a pair of files, and follows their
// changes. See [Files].
type FileCertificates struct {
	certFile, keyFile string

	mu        sync.Mutex
	checked   time.Time
	cert, key []byte // as last read and served
	current   *tls.Certificate
	problem   error
}

var _ Certificates = (*FileCertificates)(nil)

// Files returns the certificate in a pair of PEM files; certFile may hold a
// chain after the certificate itself. The error says why the files cannot be
// read now, or do not belong together.
//
// The content is looked at again by a handshake, at most once a second, so that
// a renewed certificate is served without a restart. It does not matter how the
// files change: in place, by a rename, or by the swap of a symbolic link, as
// Kubernetes does it in a volume. Should the new content be broken, the last good
// certificate is served on, and [FileCertificates.Check] says what is wrong.
func Files(certFile, keyFile string) (*FileCertificates, error) {
	f := &FileCertificates{certFile: certFile, keyFile: keyFile}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load()
	if f.problem != nil {
		return nil, f.problem
	}
	return f, nil
}

// GetCertificate returns the certificate to serve.
func (f *FileCertificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) >= recheck {
		f.load()
	}
	return f.current, nil
}

// Check is one of [Checks]: it returns an error if the files hold no certificate that
// could be served now, or one that has expired or is not valid yet. The request may be
// nil.
func (f *FileCertificates) Check(*http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load()
	if f.problem != nil {
		return f.problem
	}
	if leaf := f.current.Leaf; !valid(leaf, time.Now()) {
		return fmt.Errorf("webhook: the certificate in %s is valid from %s to %s", f.certFile, leaf.NotBefore, leaf.NotAfter)
	}
	return nil
}

// load looks at the files. The caller holds the lock.
func (f *FileCertificates) load() {
	f.checked = time.Now()
	cert, err := os.ReadFile(f.certFile)
	if err != nil {
		f.problem = fmt.Errorf("webhook: certificate: %w", err)
		return
	}
	key, err := os.ReadFile(f.keyFile)
	if err != nil {
		f.problem = fmt.Errorf("webhook: private key: %w", err)
		return
	}
	if bytes.Equal(cert, f.cert) && bytes.Equal(key, f.key) && f.current != nil {
		f.problem = nil
		return
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		f.problem = fmt.Errorf("webhook: %s and %s: %w", f.certFile, f.keyFile, err)
		return
	}
	f.cert, f.key, f.current, f.problem = cert, key, &pair, nil
}

package webhooktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
)

// SelfSigned returns a new CA certificate, and the chain and the key of a certificate that it has signed for a host and
// for 127.0.0.1, as PEM.
func SelfSigned(t testing.TB, host string) (ca, chain, key []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	expect.NoError(t, err)
	_, ca = pem.Decode(chain) // behind the leaf
	return ca, chain, key
}

// Files writes a chain and its key to files of the test, and returns the certificates that are read from them.
func Files(t testing.TB, chain, key []byte) *webhook.FileCertificates {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	expect.NoError(t, os.WriteFile(certFile, chain, 0o600))
	expect.NoError(t, os.WriteFile(keyFile, key, 0o600))
	certs, err := webhook.Files(certFile, keyFile)
	expect.NoError(t, err)
	return certs
}

// CA is a certificate authority, for certificates that SelfSigned cannot make.
type CA struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// NewCA returns a CA with a common name, which is valid for two days.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	crt, key := sign(t, template, template, nil)
	return &CA{crt, key}
}

// sign creates a key and a certificate for it. Without a signer, it signs itself.
func sign(t testing.TB, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	expect.NoError(t, err)
	crt, err := x509.ParseCertificate(der)
	expect.NoError(t, err)
	return crt, key
}

// PEM returns the certificate of the CA.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Cert.Raw})
}

// Pool returns a pool with the certificate of the CA.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	return pool
}

// Issue returns a new certificate, which is valid for an hour unless change, which gives it names, changes that.
func (ca *CA) Issue(t testing.TB, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	change(template)
	crt, key := sign(t, template, ca.Cert, ca.Key)
	return &tls.Certificate{Certificate: [][]byte{crt.Raw}, PrivateKey: key, Leaf: crt}
}

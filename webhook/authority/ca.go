package authority

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
)

// skew is how far back the validity of a certificate begins, because clocks differ.
const skew = time.Hour

// ca is a CA with its key.
type ca struct {
	cert *x509.Certificate
	key  crypto.Signer
	// cross has the name and the key of this CA, and is signed by the previous CA. With cross
	// in the chain, clients that trust only the previous CA trust certificates of this CA. It
	// may be nil.
	cross *x509.Certificate
}

// newCA returns a CA that is valid for a lifetime from now.
func newCA(name string, now time.Time, lifetime time.Duration) (*ca, error) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // rand.Reader never fails
	template := &x509.Certificate{
		// A unique name lets a verifier find the CA among others.
		Subject:               pkix.Name{CommonName: name + " " + now.UTC().Format(time.RFC3339), SerialNumber: rand.Text()},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &ca{cert: cert, key: key}, nil
}

// crossed returns next with a cross certificate by c.
func (c *ca) crossed(next *ca) (*ca, error) {
	template := &x509.Certificate{
		RawSubject:            next.cert.RawSubject,
		SubjectKeyId:          next.cert.SubjectKeyId,
		NotBefore:             next.cert.NotBefore,
		NotAfter:              earlier(next.cert.NotAfter, c.cert.NotAfter),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cross, err := sign(template, c.cert, next.key.Public(), c.key)
	if err != nil {
		return nil, err
	}
	return &ca{cert: next.cert, key: next.key, cross: cross}, nil
}

// leaf returns a new serving certificate, with its key, for the hosts. It is
// valid for a lifetime from now, but not longer than the CA.
func (c *ca) leaf(hosts []string, now time.Time, lifetime time.Duration) (*tls.Certificate, error) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // rand.Reader never fails
	template := &x509.Certificate{
		NotBefore:   c.cert.NotBefore, // valid for the same clocks as the CA
		NotAfter:    earlier(now.Add(lifetime), c.cert.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := sign(template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, err
	}
	served := &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	if c.cross != nil && now.Before(c.cross.NotAfter) {
		served.Certificate = append(served.Certificate, c.cross.Raw)
	}
	return served, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// verify returns an error if a client that trusts this CA does not accept its certificates for the hosts, for example
// because of name constraints.
func (c *ca) verify(hosts []string) error {
	served, err := c.leaf(hosts, c.cert.NotBefore, skew)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.cert)
	for _, host := range hosts {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: c.cert.NotBefore}); err != nil {
			return err
		}
	}
	return nil
}

// parseCA reads a CA that encode wrote. An expired CA is not an error. If only its cross
// certificate is broken, the CA is returned with an error.
func parseCA(certPEM, keyPEM []byte, hosts []string) (*ca, error) {
	certs, broken := parseCertificates(certPEM)
	if len(certs) == 0 {
		return nil, cmp.Or(broken, errors.New("no certificate"))
	}
	c := &ca{cert: certs[0]}
	if err := c.cert.CheckSignatureFrom(c.cert); err != nil {
		return nil, fmt.Errorf("the certificate is not self-signed: %w", err)
	}
	pair, err := tls.X509KeyPair(encodeCertificates(c.cert), keyPEM)
	if err != nil {
		return nil, fmt.Errorf("the private key: %w", err)
	}
	c.key = pair.PrivateKey.(crypto.Signer) // all keys that X509KeyPair returns are
	if err := c.verify(hosts); err != nil {
		return nil, fmt.Errorf("the certificates that it signs: %w", err)
	}
	for _, cross := range certs[1:] {
		if bytes.Equal(cross.RawSubject, c.cert.RawSubject) && bytes.Equal(cross.RawSubjectPublicKeyInfo, c.cert.RawSubjectPublicKeyInfo) {
			c.cross = cross
		}
	}
	return c, broken
}

// encode returns the CA as PEM: its certificate, with the cross certificate
// after it, and its key.
func (c *ca) encode() (certPEM, keyPEM []byte) {
	key, _ := x509.MarshalPKCS8PrivateKey(c.key) // of a type that X509KeyPair returns
	certs := []*x509.Certificate{c.cert}
	if c.cross != nil {
		certs = append(certs, c.cross)
	}
	return encodeCertificates(certs...), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
}

// parseCertificates reads PEM certificates. Other content is an error. With an error, it
// returns the certificates before the first broken one.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || block.Type != "CERTIFICATE" {
			return certs, errors.New("not a PEM certificate")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return certs, err
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

func encodeCertificates(certs ...*x509.Certificate) []byte {
	text, _ := cert.EncodeCertificates(certs...) // to memory
	return text
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

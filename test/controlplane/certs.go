package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority is the one CA of a control plane. It signs the API server's serving
// certificate and the certificates of the clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	crt, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "crdkit-controlplane"}, key)
	return &authority{crt, key}, err
}

// pem returns the CA certificate.
func (a *authority) pem() []byte { return certPEM(a.cert.Raw) }

// issue returns a new key, and a certificate for it that is valid for as long as
// the CA's.
func (a *authority) issue(cfg cert.Config) (crt, key []byte, err error) {
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: cfg.CommonName, Organization: cfg.Organization},
		DNSNames:    cfg.AltNames.DNSNames,
		IPAddresses: cfg.AltNames.IPs,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: cfg.Usages,
		NotBefore:   a.cert.NotBefore,
		NotAfter:    a.cert.NotAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, priv.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(priv)
	return certPEM(der), key, err
}

// writeFiles writes into dir what the API server needs: the CA certificate, a
// serving certificate and key, and the key that signs service account tokens.
func (a *authority) writeFiles(dir string) error {
	crt, key, err := a.issue(cert.Config{
		CommonName: apiserverName,
		AltNames:   cert.AltNames{DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	tokenKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt": a.pem(), "apiserver.crt": crt, "apiserver.key": key, "service-account.key": tokenKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// frontProxy is the name in the certificate with which the API server forwards requests.
const frontProxy = "front-proxy-client"

// writeFrontProxy writes into dir that certificate and its key, and the CA that has signed
// it, which is another than that of the clients: with a certificate of this one, a client can claim
// to be any user. It returns the flags of the API server that name them.
func writeFrontProxy(dir string) (args []string, err error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	crt, key, err := ca.issue(cert.Config{CommonName: frontProxy, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		flag, name string
		data       []byte
	}{
		{"requestheader-client-ca-file", "front-proxy-ca.crt", ca.pem()},
		{"proxy-client-cert-file", "front-proxy-client.crt", crt},
		{"proxy-client-key-file", "front-proxy-client.key", key},
	} {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path, file.data, 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--"+file.flag+"="+path)
	}
	return append(args,
		"--requestheader-allowed-names="+frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	), nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

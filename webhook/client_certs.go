package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/reload"
)

// Clients are the clients that have a certificate signed by a given CA. See [ClientsOf].
type Clients struct {
	names []string
	cas   *reload.Files[*x509.CertPool]
}

// ClientsOf returns the clients whose certificates are signed by a CA in caFile, a file of PEM
// certificates. If names are given, the common name or a DNS name of the certificate must
// exactly match one of them. ClientsOf returns an error if the file cannot be used, or if a
// name is empty.
//
// The API server presents a certificate to admission webhooks only if the AdmissionConfiguration of
// its flag --admission-control-config-file refers to a kubeconfig for webhooks
// (k8s.io/apiserver/pkg/util/webhook/authentication.go). Do not wrap a conversion handler in
// [Clients.Only], because the API server never presents a certificate to conversion webhooks
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go).
//
// The file is read again at most once a second, so that changes take effect without a restart. When
// a CA is removed, its clients are rejected, even on open connections. While the new content is
// invalid, the last valid content is used, and [Clients.Ready] returns an error.
func ClientsOf(caFile string, names ...string) (*Clients, error) {
	if slices.Contains(names, "") {
		return nil, errors.New("webhook: name \"\" of a client, expected the common name or a DNS name of its certificate")
	}
	cas, err := reload.New(func(contents [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return nil, fmt.Errorf("%s has no PEM certificate", caFile)
		}
		if err := reload.Complete(contents[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", caFile, err)
		}
		return pool, nil
	}, caFile)
	if err != nil {
		return nil, fmt.Errorf("webhook: CA of clients: %w", err)
	}
	return &Clients{slices.Clone(names), cas}, nil
}

// VerifyClients requests a certificate from each client, and verifies it. The handshake fails
// if the certificate is not signed by a CA of c, has expired, or is not for client
// authentication. A client without a certificate can connect, because the probes of the
// kubelet have none. [Clients.Only] protects the handlers that are only for given clients.
//
// TLS sessions are not resumed. Go leaves VerifiedChains in the TLS field of a request empty.
func VerifyClients(c *Clients) Option {
	return func(s *settings) { s.clients = c }
}

// require configures the verification of clients. It sets neither ClientCAs, which cannot
// change, nor GetConfigForClient, which would undo changes to the configuration by its owner.
func (c *Clients) require(config *tls.Config) {
	config.ClientAuth = tls.RequestClientCert
	// A ticket holds the certificate, for up to a week.
	config.SessionTicketsDisabled = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		return c.verify(state.PeerCertificates)
	}
}

// verify verifies a client's certificate by the present CAs, like crypto/tls with
// VerifyClientCertIfGiven (handshake_server.go).
func (c *Clients) verify(certs []*x509.Certificate) error {
	intermediates := x509.NewCertPool()
	for _, cert := range certs[1:] {
		intermediates.AddCert(cert)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{
		Roots: c.cas.Value(), Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// Only returns a handler that forwards requests of these clients to h. Other requests get an
// error with a Status:
//
//   - 401 if the client has no certificate, or its certificate is not valid now
//   - 403 if the certificate has another name than the names of [ClientsOf]
//
// All requests get a 401 unless the server requests client certificates; see [VerifyClients].
func (c *Clients) Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || c.verify(r.TLS.PeerCertificates) != nil {
			writeStatus(w, apierrors.NewUnauthorized("a client certificate is required"))
			return
		}
		leaf := r.TLS.PeerCertificates[0]
		listed := func(name string) bool { return slices.Contains(c.names, name) }
		if len(c.names) > 0 && !listed(leaf.Subject.CommonName) && !slices.ContainsFunc(leaf.DNSNames, listed) {
			writeStatus(w, apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("the client certificate of %q is not allowed", leaf.Subject.CommonName)))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Ready is a check for [Checks]. It returns an error if the file cannot be used now. The
// request may be nil.
func (c *Clients) Ready(*http.Request) error {
	if _, err := c.cas.Check(); err != nil {
		return fmt.Errorf("webhook: CA of clients: %w", err)
	}
	return nil
}

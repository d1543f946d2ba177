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

// Clients are those whose client certificate a CA has signed. See [ClientsOf].
type Clients struct {
	names []string
	cas   *reload.Files[*x509.CertPool]
}

// ClientsOf returns the clients whose certificates are signed by a CA in caFile, a
// file of PEM certificates. With names, the common name of a certificate or one of
// its DNS names must be one of them, to the letter. The error says why the file
// cannot be used now, or that a name is empty.
//
// An API server shows a certificate to admission webhooks when the
// AdmissionConfiguration that it was started with (--admission-control-config-file)
// names a kubeconfig for them (k8s.io/apiserver/pkg/util/webhook/authentication.go). It
// never shows one to conversion webhooks
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go), so a
// conversion handler must not be behind [Clients.Only].
//
// The file is read again at most once a second. A new CA counts without a restart, and
// one that is gone no longer counts, not even on a connection that it has let in. While
// the new content is broken, the last good one counts, and [Clients.Check] fails.
func ClientsOf(caFile string, names ...string) (*Clients, error) {
	if slices.Contains(names, "") {
		return nil, errors.New("webhook: name \"\" of a client, expected the common name or a DNS name of its certificate")
	}
	cas, err := reload.New(func(contents [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return nil, fmt.Errorf("%s has no PEM certificate", caFile)
		}
		return pool, nil
	}, caFile)
	if err != nil {
		return nil, fmt.Errorf("webhook: CA of clients: %w", err)
	}
	return &Clients{slices.Clone(names), cas}, nil
}

// VerifyClients asks clients for a certificate, and verifies the one that is given:
// the handshake fails if it is not signed by a CA of c, has expired, or is not for
// client authentication. A client without a certificate is let in, because kubelet's
// probes have none; [Clients.Only] protects the handlers that are for others. Sessions
// are not resumed, and Go leaves VerifiedChains of a request's TLS empty.
func VerifyClients(c *Clients) Option {
	return func(s *settings) { s.clients = c }
}

// require makes a configuration that verifies clients. It sets neither ClientCAs nor
// GetConfigForClient: the former cannot change, and the latter would undo what the owner
// of the configuration changes.
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

// verify verifies a client's certificate, as crypto/tls does with
// VerifyClientCertIfGiven (handshake_server.go), by the CAs that count now.
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

// Only returns a handler that lets only these clients through to h. A request on a
// connection without a certificate that holds now is answered with 401, one with the
// certificate of another client with 403; both carry a Status. It needs a server that asks
// for a certificate, as [VerifyClients] makes it: elsewhere no client gets through.
func (c *Clients) Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || c.verify(r.TLS.PeerCertificates) != nil {
			writeStatus(w, apierrors.NewUnauthorized("a client certificate is required"))
			return
		}
		leaf := r.TLS.PeerCertificates[0]
		listed := func(name string) bool { return slices.Contains(c.names, name) }
		if len(c.names) > 0 && !listed(leaf.Subject.CommonName) && !slices.ContainsFunc(leaf.DNSNames, listed) {
			writeStatus(w, apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("the client certificate of %q may not do this", leaf.Subject.CommonName)))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Check is one of [Checks]: it returns an error if the file cannot be used now. The
// request may be nil.
func (c *Clients) Check(*http.Request) error {
	if _, err := c.cas.Check(); err != nil {
		return fmt.Errorf("webhook: CA of clients: %w", err)
	}
	return nil
}

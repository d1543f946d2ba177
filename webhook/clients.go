package webhook

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errNoClients = errors.New("webhook: VerifyClients was given nil: give it what ClientsOf returned, and look at the error of that")

// Clients are those who can prove who they are by a client certificate of a CA. See
// [ClientsOf].
type Clients struct {
	caFile string
	names  []string

	mu      sync.Mutex
	checked time.Time
	content []byte // as last read and good
	cas     []*x509.Certificate
	pool    *x509.CertPool
	problem error
	proven  map[[sha256.Size]byte][][]*x509.Certificate // by the CAs in pool
}

// ClientsOf returns the clients whose certificates are signed by a CA in caFile, a
// file of PEM certificates. With names, the common name of a certificate or one of
// its DNS names must be one of them, to the letter. The error says why the file
// cannot be used now.
//
// An API server shows a client certificate to webhooks when the
// AdmissionConfiguration that it was started with (--admission-control-config-file)
// names a kubeconfig for them; by itself it shows none
// (k8s.io/apiserver/pkg/util/webhook/authentication.go). That is for admission: to a
// conversion webhook it shows none, whatever it was started with
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go), so a
// conversion handler must not be behind [Clients.Only].
//
// The content of the file is looked at again at most once a second, so that a new CA
// counts without a restart, and one that is gone counts no more, not even on a
// connection that it has let in. Should the new content be broken, the last good one
// is kept, and [Clients.Check] says what is wrong.
func ClientsOf(caFile string, names ...string) (*Clients, error) {
	c := &Clients{caFile: caFile, names: slices.Clone(names)}
	c.load()
	var errs []error
	if slices.Contains(names, "") {
		errs = append(errs, errors.New("webhook: a client's name is empty: give the common name or a DNS name of its certificate"))
	}
	if err := errors.Join(append(errs, c.problem)...); err != nil {
		return nil, err
	}
	return c, nil
}

// VerifyClients asks clients for a certificate, and verifies the one that is given:
// with one that is not signed by a CA of theirs, has expired, or is not for client
// authentication, the handshake fails. A client without a certificate is let in,
// because kubelet's probes have none; [Clients.Only] protects the handlers that are
// for others. Sessions are not resumed: each connection proves anew who is at its
// end. Go leaves VerifiedChains of a request's TLS empty then. It concerns Serve and
// TLSConfig.
func VerifyClients(c *Clients) Option {
	return func(s *settings) { s.verify, s.clients = true, c }
}

// require makes a configuration that verifies clients. It names no CA to them, since
// those may change; and it has no configuration inside (GetConfigForClient), which
// would undo what its owner changes.
func (c *Clients) require(config *tls.Config) {
	config.ClientAuth = tls.RequestClientCert
	// A ticket holds the certificate, for up to a week.
	config.SessionTicketsDisabled = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		_, err := c.chains(state.PeerCertificates)
		return err
	}
}

// maxProven is how many certificates are remembered as proven.
const maxProven = 1000

// chains verifies a client's certificate, as crypto/tls does with
// VerifyClientCertIfGiven (handshake_server.go), by the CAs that count now. Chains
// that hold are remembered: each request asks for them.
func (c *Clients) chains(certs []*x509.Certificate) ([][]*x509.Certificate, error) {
	c.mu.Lock()
	if time.Since(c.checked) >= recheck {
		c.load()
	}
	pool, leaf := c.pool, sha256.Sum256(certs[0].Raw)
	known := c.proven[leaf]
	c.mu.Unlock()
	if now := time.Now(); slices.ContainsFunc(known, func(chain []*x509.Certificate) bool {
		return !slices.ContainsFunc(chain, func(cert *x509.Certificate) bool { return !valid(cert, now) })
	}) {
		return known, nil
	}
	rest := x509.NewCertPool()
	for _, cert := range certs[1:] {
		rest.AddCert(cert)
	}
	chains, err := certs[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: rest, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("webhook: the certificate of a client: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == pool { // else they are proven by CAs that do not count any more
		if len(c.proven) >= maxProven {
			clear(c.proven)
		}
		c.proven[leaf] = chains
	}
	return chains, nil
}

// Check is one of [Checks]: it returns an error if the file holds no CA that could be
// used now. The request may be nil.
func (c *Clients) Check(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load()
	if c.problem != nil {
		return c.problem
	}
	if now := time.Now(); !slices.ContainsFunc(c.cas, func(ca *x509.Certificate) bool { return valid(ca, now) }) {
		return fmt.Errorf("webhook: no certificate in %s is valid now: %s was from %s to %s", c.caFile, c.cas[0].Subject, c.cas[0].NotBefore, c.cas[0].NotAfter)
	}
	return nil
}

func valid(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
}

// load looks at the file. The caller holds the lock.
func (c *Clients) load() {
	c.checked = time.Now()
	content, err := os.ReadFile(c.caFile)
	if err != nil {
		c.problem = fmt.Errorf("webhook: CA of clients: %w", err)
		return
	}
	if c.pool != nil && bytes.Equal(content, c.content) {
		c.problem = nil
		return
	}
	pool := x509.NewCertPool()
	var cas []*x509.Certificate
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			c.problem = fmt.Errorf("webhook: CA of clients: certificate %d of %s: %w", len(cas)+1, c.caFile, err)
			return
		}
		cas = append(cas, ca)
		pool.AddCert(ca)
	}
	if len(cas) == 0 {
		c.problem = fmt.Errorf("webhook: CA of clients: %s holds no PEM certificate", c.caFile)
		return
	}
	c.content, c.cas, c.pool, c.problem = content, cas, pool, nil
	c.proven = map[[sha256.Size]byte][][]*x509.Certificate{}
}

// Only returns a handler that lets only these clients through to h. A request on a
// connection without a certificate that holds now is answered with 401, one with the
// certificate of somebody else with 403; both carry a Status. It verifies the
// certificate by itself, and needs a server that asks for one, as [VerifyClients] makes
// it: elsewhere nobody gets through.
func (c *Clients) Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.prove(r.TLS) {
			writeStatus(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "a client certificate is required", 0)
			return
		}
		leaf := r.TLS.PeerCertificates[0]
		if len(c.names) > 0 && !slices.Contains(c.names, leaf.Subject.CommonName) && !slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return slices.Contains(c.names, name) }) {
			writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("the client certificate of %q may not do this", leaf.Subject.CommonName), 0)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// prove says whether the certificate of a connection holds now: it may be old.
func (c *Clients) prove(state *tls.ConnectionState) bool {
	if state == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	_, err := c.chains(state.PeerCertificates)
	return err == nil
}

// writeStatus answers as the API server does, so that its message reaches the user
// (client-go/rest/request.go).
func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, retryAfter int32) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}
	if retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter)))
	}
	body, err := json.Marshal(status)
	if err != nil { // a Status holds nothing that cannot be encoded
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client has gone: nobody is left to be told
}

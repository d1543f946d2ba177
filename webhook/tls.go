package webhook

import (
	"crypto/tls"
	"errors"
)

// AllowTLS12 lets clients of TLS 1.2 in, with the cipher suites that are forward
// secret and that HTTP/2 allows (RFC 9113, appendix A): ECDHE with AES-GCM or
// ChaCha20-Poly1305. The default is TLS 1.3 alone, which every supported API
// server speaks. It concerns Serve and TLSConfig.
func AllowTLS12() Option {
	return func(s *settings) { s.tls12 = true }
}

// forwardSecret returns the suites of TLS 1.2; those of TLS 1.3 are not for choice.
func forwardSecret() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// TLSConfig returns the configuration with which Serve listens: TLS 1.3, HTTP/2
// and HTTP/1.1, and a certificate that may change at each handshake. The options
// that concern it are [AllowTLS12] and [VerifyClients]; others have no effect.
//
// It is for those who serve by other means, such as an [http.Server] of their own, and
// may be changed: who wants no HTTP/2 sets NextProtos to "http/1.1" alone. Where a
// configuration cannot be given but only changed, as in the TLSOpts of
// controller-runtime's webhook server, copy MinVersion, CipherSuites, NextProtos and
// GetCertificate; and with VerifyClients, also ClientAuth, SessionTicketsDisabled and
// VerifyConnection. Certificates stays empty: else crypto/tls takes the first of those
// for a client that names no server.
//
// It panics if certs is nil, or an option that concerns it is wrong.
func TLSConfig(certs Certificates, opts ...Option) *tls.Config {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	if err := errors.Join(set.tlsFaults(certs)...); err != nil {
		panic(err)
	}
	return set.tlsConfig(certs)
}

// tlsFaults returns what is wrong with what tlsConfig is given.
func (set *settings) tlsFaults(certs Certificates) (faults []error) {
	if certs == nil {
		faults = append(faults, errors.New("webhook: the certificates are nil: give what Files returned, and look at the error of that"))
	}
	if set.verify && set.clients == nil {
		faults = append(faults, errNoClients)
	}
	return faults
}

func (set *settings) tlsConfig(certs Certificates) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: certs.GetCertificate,
	}
	if set.tls12 {
		config.MinVersion = tls.VersionTLS12
		config.CipherSuites = forwardSecret()
	}
	if set.verify {
		set.clients.require(config)
	}
	return config
}

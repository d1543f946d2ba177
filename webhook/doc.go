// Package webhook answers one question: how do the handlers reach the API
// server?
//
// A handler is an [http.Handler], and [Serve] serves it over HTTPS, as the API
// server expects of a webhook, until its context ends; then it finishes the
// requests in flight:
//
//	certs, err := webhook.Files("tls.crt", "tls.key")
//	err = webhook.Serve(ctx, listener, mux, certs)
//
// Several handlers on one port are an [http.ServeMux]; health is [Checks]; and
// [TLSConfig] is for those who serve by other means.
//
// A deployment that is rolled loses no request with
//
//	webhook.Serve(ctx, listener, mux, certs,
//		webhook.ShutdownDelay(10*time.Second), // until the Service has noticed
//		webhook.While(informers))              // until the last request is answered
//
// and "shutdown": [Draining] among the checks of readiness. When the context ends, the
// answers tell their clients to go elsewhere, since a POST on a connection that the
// server closes at that moment is lost.
//
// Who may call: anybody who reaches the port, unless [VerifyClients] asks for a client
// certificate and [Clients.Only] insists on it.
//
// Clients that mean harm are kept from harming others: each gets only so much time, and
// all together so many connections ([MaxConnections]) and so much memory
// ([MaxBodyBytes]).
//
// The package does not issue certificates (see webhook/authority) and does not register
// webhooks with the API server (see webhook/registration). All of it together is one call in
// webhook/replica; what tells Prometheus is webhook/metrics. It does
// not limit how many requests are worked on at a time beyond the memory that they take
// ([MaxBodyBytes]), nor how many handshakes a second. It does not know what it serves.
package webhook

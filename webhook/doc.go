// Package webhook serves the handlers of webhooks to the API server over HTTPS.
//
// [Serve] serves an [http.Handler] until the context is done, and then finishes the requests in
// flight:
//
//	certs, err := webhook.Files("tls.crt", "tls.key")
//	err = webhook.Serve(ctx, listener, mux, certs)
//
// Use an [http.ServeMux] for several handlers on one port, [Checks] for health endpoints, and
// [TLSConfig] for other servers. To lose no request in a rolling update, use these options:
//
//	webhook.Serve(ctx, listener, mux, certs,
//		webhook.ShutdownDelay(10*time.Second), // until the Service has noticed
//		webhook.RunAlongside(informers))       // until the last request is answered
//
// Also add the check "shutdown": [ShutdownCheck] to the readiness checks. After the context is done, the
// responses ask clients to open new connections, which go to other replicas, so that the server
// closes no connection on which a client is sending a request.
//
// # Misbehaving clients
//
// Any client that reaches the port can send requests, unless you request client certificates by
// [VerifyClients], and require them by [Clients.Only]. Each handshake, header, body and response
// has a deadline (see [Serve]).
//
// The handlers of packages conversion and admission limit the memory that the bodies, decoded
// objects and responses of all reviews in the process take together to (limit − 32 MiB) / 4, and at
// least 4 MiB: 24 MiB in a container of 128Mi. The limit, which is read when the first handler is
// created, is the lower one of GOMEMLIMIT and the memory limits of the process's cgroups, or 2 GiB
// without any. Without GOMEMLIMIT, 90 % of the limit of the cgroup also becomes the limit of Go's
// garbage collector (runtime/debug.SetMemoryLimit). A review that does not fit beside the others
// gets a 503, those of up to 256 KiB after two seconds, with a Retry-After of one second, and the
// API server retries it up to ten times (k8s.io/client-go/rest/with_retry.go). A review that is too
// large even alone gets a 413. An eighth of the memory is reserved for reviews that need at most 1
// MiB. A function that does not return keeps the memory of its review.
//
// The server does not protect clients from one another, because it does not limit the number of
// connections, requests and handshakes. A client that opens all connections that the process may
// have, or fills the memory for reviews and stalls, repeatedly blocks others until its deadlines
// pass. [github.com/crdkit/crdkit/webhook/registration.NetworkPolicy] admits only the API servers.
//
// # Limitations
//
// The package does not issue certificates (see webhook/authority), register webhooks with the API
// server (see webhook/registration) or export metrics (see webhook/metrics). Package
// webhook/replica does all of this in one call. For handlers of other libraries, limit the bodies
// of requests with [http.MaxBytesHandler].
package webhook

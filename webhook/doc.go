// Package webhook answers one question: how do the handlers reach the API server?
//
// A handler is an [http.Handler], and [Serve] serves it over HTTPS, as the API server
// expects of a webhook, until its context ends; then it finishes the requests in flight:
//
//	certs, err := webhook.Files("tls.crt", "tls.key")
//	err = webhook.Serve(ctx, listener, mux, certs)
//
// Several handlers on one port are an [http.ServeMux]; health is [Checks]; [TLSConfig] is
// for other servers. A deployment that is rolled loses no request with
//
//	webhook.Serve(ctx, listener, mux, certs,
//		webhook.ShutdownDelay(10*time.Second), // until the Service has noticed
//		webhook.RunAlongside(informers))       // until the last request is answered
//
// and "shutdown": [Draining] among the checks of readiness. When the context ends, the
// answers tell their clients to go elsewhere, since a POST on a connection that the
// server closes at that moment is lost.
//
// # Misbehaving clients
//
// Everybody who reaches the port may call, unless [VerifyClients] asks for a client
// certificate and [Clients.Only] insists on it. Each handshake, header, body and answer
// has a deadline (see [Serve]). Bodies take a bounded amount of memory ([MaxBodyBytes]);
// a request that does not fit is answered with a 503, and the API server tries it again.
//
// The server is not fair among hostile clients: one that opens all connections which the
// process may have, or fills the memory of bodies and stalls, keeps others out until its
// deadlines pass, and it may come again. Nor is the number of connections, requests or
// handshakes bounded. A NetworkPolicy gives that, as it lets only the API servers in:
//
//	apiVersion: networking.k8s.io/v1
//	kind: NetworkPolicy
//	metadata: {name: webhook-from-api-servers}
//	spec:
//	  podSelector: {matchLabels: {app: backup-operator}}
//	  policyTypes: [Ingress]
//	  ingress:
//	  - from: [{ipBlock: {cidr: 10.0.0.0/28}}] # the nodes of the control plane
//	    ports: [{port: 8443}]
//
// The kubelet's probes pass, since a pod always hears its own node.
//
// # What it does not do
//
// The package does not issue certificates (see webhook/authority), register webhooks with
// the API server (see webhook/registration) or keep metrics (see webhook/metrics);
// webhook/replica is all of it in one call. It does not bound a single body: the handlers
// of this library do, and [http.MaxBytesHandler] does it for others.
package webhook

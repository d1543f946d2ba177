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
// The package does not issue certificates and does not register webhooks with the
// API server. It does not know what it serves.
package webhook

package authority_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/webhook/authority"
)

// The first replica of an operator creates a CA, and serves with its certificate.
func Example() {
	server := apiServer() // in a pod, rest.InClusterConfig knows the real one
	defer server.Close()
	config := &rest.Config{Host: server.URL}

	certs, err := authority.New(config, "pizza-system", "pizza-operator-webhook", []string{"pizza-operator.pizza-system.svc"})
	if err != nil {
		panic(err)
	}
	fmt.Println(certs.Ready(nil))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { certs.Run(ctx) })

	// The registration waits for the bundle. The server is
	// webhook.Serve(ctx, listener, mux, certs).
	bundle := certs.CABundle()
	for ; bundle == nil; bundle = certs.CABundle() {
		time.Sleep(100 * time.Millisecond)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	served, err := certs.GetCertificate(nil)
	if err != nil {
		panic(err)
	}
	_, err = served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "pizza-operator.pizza-system.svc"})
	fmt.Println("trusted:", err == nil)
	fmt.Println("valid for", time.Until(served.Leaf.NotAfter).Round(time.Hour))
	fmt.Println("ready:", certs.Ready(nil) == nil)

	cancel()
	running.Wait()
	// Output:
	// authority: Secret pizza-system/pizza-operator-webhook: no certificate yet: the Secret has not been read
	// trusted: true
	// valid for 24h0m0s
	// ready: true
}

// apiServer returns a server that stores one Secret.
func apiServer() *httptest.Server {
	var mu sync.Mutex
	var secret json.RawMessage
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Has("watch"):
			return // an end at once: it looks now and then
		case r.Method == http.MethodPost:
			secret, _ = io.ReadAll(r.Body)
		case secret == nil:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
			return
		}
		w.Write(secret)
	}))
}

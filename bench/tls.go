package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/cert"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/crdkit/crdkit/webhook"
)

// clients is the number of concurrent requests.
const clients = 8

// server is a webhook server on loopback, and a client that trusts it.
type server struct {
	url    string
	client *http.Client
}

// servers starts both servers, each with its own handler. The function stop stops
// them.
func servers() (ours, theirs server, stop func()) {
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		panic(err)
	}
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := os.WriteFile(certFile, chain, 0o600); err != nil {
		panic(err)
	}
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		panic(err)
	}
	_, ca := pem.Decode(chain)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := func() *http.Client { // as that of the API server for webhooks of a Service: see apiserver/pkg/util/webhook/client.go
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 25}
		transport.Protocols.SetHTTP1(true)
		return &http.Client{Transport: transport}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup

	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	running.Go(func() {
		if err := webhook.Serve(ctx, listener, crdkitConversion(), certs); err != nil {
			panic(err)
		}
	})
	ours = server{"https://" + listener.Addr().String() + "/convert", client()}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s := peer.NewServer(peer.Options{
		Host: "127.0.0.1", Port: port, CertDir: dir,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }},
	})
	s.Register("/convert", peerConversion())
	running.Go(func() {
		if err := s.Start(ctx); err != nil {
			panic(err)
		}
	})
	theirs = server{fmt.Sprintf("https://127.0.0.1:%d/convert", port), client()}

	return ours, theirs, func() {
		ours.client.CloseIdleConnections()
		theirs.client.CloseIdleConnections()
		cancel()
		running.Wait()
		os.RemoveAll(dir)
	}
}

// ask posts a body and reads the answer.
func (s server) ask(body []byte) error {
	resp, err := s.client.Post(s.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || n < 1000 {
		return fmt.Errorf("%s, %d bytes: %w", resp.Status, n, err)
	}
	return nil
}

// perSecond returns how many requests a second a server answers.
func (s server) perSecond(body []byte, each time.Duration) float64 {
	if err := within(10*time.Second, func() error { return s.ask(body) }); err != nil { // until it is up
		panic(err)
	}
	var answered atomic.Int64
	begin := time.Now()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for time.Since(begin) < each {
				if err := s.ask(body); err != nil {
					panic(err)
				}
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(answered.Load()) / time.Since(begin).Seconds()
}

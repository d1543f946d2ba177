package soak

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lag is how old the CA bundle is that the probes trust: an API server may be that late.
const lag = 700 * time.Millisecond

// host is whom the API server expects.
const host = name + "." + namespace + ".svc"

// probes ask the replicas as an API server would, but with a new connection each time, and
// with requests that take long. The real one seldom does either.
type probes struct {
	*restaurant
	ledger *ledger

	mu      sync.Mutex
	bundles []bundle // as registered, the newest last
}

type bundle struct {
	seen time.Time
	pem  []byte
}

func (p *probes) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { p.readBundles(ctx) })
	for _, o := range p.operators {
		running.Go(func() { p.handshakes(ctx, o) })
	}
	for range 4 {
		running.Go(func() { p.slowReviews(ctx) })
	}
	running.Wait()
}

// readBundles reads the bundle of the definition, until ctx ends.
func (p *probes) readBundles(ctx context.Context) {
	client := p.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for sleep(ctx, 100*time.Millisecond) {
		obj, err := client.Get(ctx, "pizzas."+group, metav1.GetOptions{})
		if err != nil {
			continue
		}
		text, _, _ := unstructured.NestedString(obj.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		pem, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		p.mu.Lock()
		if n := len(p.bundles); n == 0 || string(p.bundles[n-1].pem) != string(pem) {
			p.bundles = append(p.bundles, bundle{time.Now(), pem})
		}
		p.mu.Unlock()
	}
}

// trusted returns the newest bundle that is not younger than lag. It returns nil without such a bundle, or if
// it was overwritten.
func (p *probes) trusted() *x509.CertPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.bundles) - 1; i >= 0; i-- {
		if b := p.bundles[i]; time.Since(b.seen) >= lag {
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(b.pem) || p.foreign(b.pem) {
				return nil
			}
			return pool
		}
	}
	return nil
}

// handshakes opens connections to a replica while that is ready.
func (p *probes) handshakes(ctx context.Context, o *operator) {
	for sleep(ctx, 100*time.Millisecond) {
		pool := p.trusted()
		if pool == nil || !p.balancer.IsReady(o.addr) {
			continue
		}
		start := time.Now()
		d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{RootCAs: pool, ServerName: host}}
		conn, err := d.DialContext(ctx, "tcp", o.addr)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			_ = conn.Close()
		} else if untrusted := (*tls.CertificateVerificationError)(nil); !errors.As(err, &untrusted) {
			continue // it has been killed, or is stopping: others tell
		}
		p.ledger.note("handshake", start, err)
	}
}

const slowReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"slow","operation":"CREATE",` +
	`"kind":{"group":"` + group + `","version":"v1alpha1","kind":"Pizza"},"resource":{"group":"` + group + `","version":"v1alpha1","resource":"pizzas"},` +
	`"namespace":"default","name":"slow","object":{"apiVersion":"` + group + `/v1alpha1","kind":"Pizza","metadata":{"name":"slow","namespace":"default"},"spec":{}}}}`

// slowReviews sends reviews whose bodies take two seconds, so that one is under way whenever a
// replica stops.
func (p *probes) slowReviews(ctx context.Context) {
	for sleep(ctx, 300*time.Millisecond) {
		pool := p.trusted()
		if pool == nil || len(p.balancer.Ready()) == 0 {
			continue
		}
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: host}, DisableKeepAlives: true,
		}}
		read, write := io.Pipe()
		go func() {
			_, _ = io.WriteString(write, slowReview[:100])
			time.Sleep(2 * time.Second)
			_, _ = io.WriteString(write, slowReview[100:])
			_ = write.Close()
		}()
		start := time.Now()
		err := func() error {
			resp, err := client.Post("https://"+p.balancer.Addr().String()+"/v1/default/pizzas", "application/json", read)
			if err != nil {
				return fmt.Errorf("failed calling webhook: %w", err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return fmt.Errorf("failed calling webhook: %w", err)
			}
			if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"allowed":true`) {
				return fmt.Errorf("%s: %s", resp.Status, body)
			}
			return nil
		}()
		p.ledger.note("slow review", start, err)
	}
}

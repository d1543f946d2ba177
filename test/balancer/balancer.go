// Package balancer is what a Service is to webhooks, for tests: an address behind
// which there are several replicas, of which only those that are ready get
// connections.
//
// Like kube-proxy it knows connections, not requests: one that is open stays with
// its replica, ready or not, until either end closes it.
package balancer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// probePeriod is short, so that tests are.
const probePeriod = 50 * time.Millisecond

// Balancer forwards connections to replicas that are ready.
type Balancer struct {
	listener net.Listener
	stop     func()
	running  sync.WaitGroup

	mu          sync.Mutex
	replicas    map[string]*target // by address
	connections map[string]int     // by address, of replicas that were removed, too
	turn        int
}

type target struct {
	ready bool
	stop  func()
}

// New serves on the listener, until Close.
func New(l net.Listener) *Balancer {
	ctx, stop := context.WithCancel(context.Background())
	b := &Balancer{listener: l, stop: stop, replicas: map[string]*target{}, connections: map[string]int{}}
	b.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.running.Go(func() { b.forward(ctx, conn) })
		}
	})
	return b
}

// Addr is the address of the listener.
func (b *Balancer) Addr() net.Addr { return b.listener.Addr() }

// Add asks the replica at an address whether it is ready (GET /readyz, over HTTPS), again
// and again until Remove or Close.
func (b *Balancer) Add(addr string) {
	ctx, stop := context.WithCancel(context.Background())
	t := &target{stop: stop}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas[addr] = t
	b.running.Go(func() {
		client := &http.Client{
			// A kubelet waits for a second, and three times (failureThreshold): one slow answer on a busy
			// machine does not take the only replica out.
			Timeout: 30 * time.Second,
			// A kubelet does not verify the certificate either.
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		}
		for ctx.Err() == nil {
			ready := probe(ctx, client, "https://"+addr+"/readyz")
			b.mu.Lock()
			t.ready = ready
			b.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(probePeriod):
			}
		}
	})
}

func probe(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Remove sends no more connections to an address.
func (b *Balancer) Remove(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.replicas[addr]; t != nil {
		t.stop()
		delete(b.replicas, addr)
	}
}

// Ready returns the addresses of the replicas that are ready.
func (b *Balancer) Ready() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ready []string
	for addr, t := range b.replicas {
		if t.ready {
			ready = append(ready, addr)
		}
	}
	slices.Sort(ready)
	return ready
}

// IsReady reports whether a replica is ready.
func (b *Balancer) IsReady(addr string) bool { return slices.Contains(b.Ready(), addr) }

// Connections returns how many connections clients have to the replica at an address. A client that has
// not yet seen that the replica closed one still has it.
func (b *Balancer) Connections(addr string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.connections[addr]
}

// count adds to the connections of a replica.
func (b *Balancer) count(addr string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connections[addr] += n
}

// Close stops all of it and closes all connections.
func (b *Balancer) Close() {
	b.stop()
	_ = b.listener.Close()
	b.mu.Lock()
	for _, t := range b.replicas {
		t.stop()
	}
	b.mu.Unlock()
	b.running.Wait()
}

// forward connects a client with one of the replicas, with another if that one does not
// answer: there nothing has been sent yet.
func (b *Balancer) forward(ctx context.Context, client net.Conn) {
	defer client.Close()
	ready := b.Ready()
	b.mu.Lock()
	b.turn++
	turn := b.turn
	b.mu.Unlock()
	for i := range ready {
		var d net.Dialer
		addr := ready[(turn+i)%len(ready)]
		server, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			continue
		}
		defer server.Close()
		b.count(addr, 1)
		defer b.count(addr, -1)
		defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
		done := make(chan struct{}, 2)
		pipe := func(to, from net.Conn) {
			if _, err := io.Copy(to, from); err != nil { // reset, as by a replica that was killed
				_, _ = to.Close(), from.Close()
			} else if c, ok := to.(*net.TCPConn); ok {
				_ = c.CloseWrite()
			}
			done <- struct{}{}
		}
		go pipe(client, server)
		go pipe(server, client)
		<-done
		<-done
		return
	}
}

package soak

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/crdkit/crdkit/examples/internal/show"
)

// operator is one replica of the pizza operator, a process.
type operator struct {
	*show.Process
	name    string
	binary  string
	base    []string // arguments of every release
	args    []string
	addr    string
	logFile string
	started time.Time
}

// start starts the process.
func (o *operator) start() (err error) {
	o.Process, err = show.Start("replica "+o.name, o.logFile, exec.Command(o.binary, o.args...))
	o.started = time.Now()
	return err
}

// stop ends the process in order.
func (o *operator) stop() error { return o.Stop(45 * time.Second) }

// await returns when the replica is ready.
func (o *operator) await(ctx context.Context) error {
	return o.Await(ctx, func() error {
		resp, err := o.get(ctx, "/readyz")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

func (o *operator) get(ctx context.Context, path string) (*http.Response, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		// A kubelet does not verify the certificate either.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.addr+path, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// footprint is what a replica takes. The API server keeps a connection for a minute and a half
// after it has begun to use another one for another CA bundle (apimachinery/pkg/util/net/http.go);
// each is a goroutine, which does not count here.
type footprint struct {
	goroutines, connections, heapBytes, residentBytes float64
}

// measure reads the replica's metrics.
func (o *operator) measure(ctx context.Context) (footprint, error) {
	resp, err := o.get(ctx, "/metrics")
	if err != nil {
		return footprint{}, err
	}
	defer resp.Body.Close()
	var f footprint
	into := map[string]*float64{
		"go_goroutines": &f.goroutines, "go_memstats_heap_inuse_bytes": &f.heapBytes, "process_resident_memory_bytes": &f.residentBytes,
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if p := into[name]; p != nil {
			if *p, err = strconv.ParseFloat(value, 64); err != nil {
				return footprint{}, err
			}
		}
	}
	return f, lines.Err()
}

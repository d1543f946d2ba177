package soak

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
)

// operator is one replica of the pizza operator, a process.
type operator struct {
	name    string
	binary  string
	args    []string
	addr    string
	logFile string

	cmd     *exec.Cmd
	exited  chan struct{}
	started time.Time
}

// start starts the process.
func (o *operator) start() error {
	log, err := os.OpenFile(o.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	o.cmd = exec.Command(o.binary, o.args...)
	o.cmd.Stdout, o.cmd.Stderr = log, log
	walkthrough.DieWithParent(o.cmd)
	if err := o.cmd.Start(); err != nil {
		return err
	}
	o.started = time.Now()
	exited := make(chan struct{})
	o.exited = exited
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // the exit code is looked at where it matters
		close(exited)
	}(o.cmd)
	return nil
}

// kill ends the process at once, and returns when its connections are broken.
func (o *operator) kill() error {
	if err := o.cmd.Process.Kill(); err != nil {
		return err
	}
	<-o.exited
	return nil
}

// stop ends the process in order.
func (o *operator) stop() error {
	if err := o.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-o.exited:
	case <-time.After(45 * time.Second):
		return errors.Join(fmt.Errorf("replica %s did not stop within 45 seconds", o.name), o.kill())
	}
	if code := o.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("replica %s stopped with exit code %d:\n%s", o.name, code, o.logTail())
	}
	return nil
}

// await returns when the replica is ready.
func (o *operator) await(ctx context.Context) error {
	for begin := time.Now(); ; {
		if resp, err := o.get(ctx, "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.exited:
			return fmt.Errorf("replica %s stopped:\n%s", o.name, o.logTail())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("replica %s is not ready after a minute:\n%s", o.name, o.logTail())
		}
	}
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

func (o *operator) logTail() string {
	log, err := os.ReadFile(o.logFile)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4<<10):])
}

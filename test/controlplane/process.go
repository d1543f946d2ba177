package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	etcdName      = "etcd"
	apiserverName = "kube-apiserver"
	kubectlName   = "kubectl"
)

// process is a running etcd or kube-apiserver.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// run starts the named binary. Its log goes to a file in the control plane's
// directory.
func (cp *ControlPlane) run(name string, args ...string) (*process, error) {
	log, err := os.Create(cp.file(name + ".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{
		name: name,
		cmd:  cp.watchdog.command(name, filepath.Join(cp.assets, name), args...),
		log:  log.Name(),
		done: make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the ProcessState keeps what it says
		cp.watchdog.forget(name)
	}()
	return p, nil
}

// exited returns nil while the process runs, and then an error with how it
// ended and the tail of its log.
func (p *process) exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended unexpectedly: %s\n%s", p.name, p.cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

// await returns nil once ready does. It returns an error at once when the
// process ends, and when ctx does.
func (p *process) await(ctx context.Context, ready func() error) error {
	for tick := time.NewTicker(25 * time.Millisecond); ; {
		notReady := ready()
		if notReady == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exited()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w\n%s", p.name, context.Cause(ctx), notReady, p.tail())
		case <-tick.C:
		}
	}
}

// stop returns when the process has ended: by SIGTERM, or by SIGKILL if that
// takes longer than grace. It returns an error if it had ended before.
func (p *process) stop(grace time.Duration) error {
	if err := p.exited(); err != nil {
		return err
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return nil
}

// tail returns the last lines of the log.
func (p *process) tail() string {
	const limit = 4 << 10
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(log) > limit {
		log = log[len(log)-limit:]
		log = log[bytes.IndexByte(log, '\n')+1:]
	}
	return "log of " + p.name + ":\n" + string(log)
}

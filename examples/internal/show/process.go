package show

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that runs beside a control plane. It ends with this one.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	exited    chan struct{}
}

// Start starts a program, whose output is added to the file log.
func Start(name, log string, cmd *exec.Cmd) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{name: name, log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log has more to say than the exit code
		close(p.exited)
	}()
	return p, nil
}

// Await waits until the process is ready, for a minute. It gives up at once when the process
// has ended.
func (p *Process) Await(ctx context.Context, ready func() error) error {
	err := Eventually(ctx, time.Minute, func() error {
		select {
		case <-p.exited:
			return Permanent(errors.New("process stopped"))
		default:
			return ready()
		}
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, p.Log())
	}
	return nil
}

// Stop has the process stop in order. It returns an error if it does not stop within that
// time, or had stopped before, or with an exit code other than 0.
func (p *Process) Stop(timeout time.Duration) error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s had stopped: %s\n%s", p.name, p.cmd.ProcessState, p.Log())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(timeout):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s:\n%s", p.name, timeout, p.Log())
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s stopped with %s:\n%s", p.name, p.cmd.ProcessState, p.Log())
	}
	return nil
}

// Kill ends the process at once, if it has not ended, and returns when its connections are
// broken.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// Log returns the end of the process's output.
func (p *Process) Log() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4<<10):])
}

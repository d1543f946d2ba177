package walkthrough

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is an etcd or a server that runs beside the control plane.
type process struct {
	name, log string
	cmd       *exec.Cmd
	exited    chan struct{}
}

// start starts a program, whose output goes to a file.
func start(name, log string, cmd *exec.Cmd) (*process, error) {
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
	p := &process{name: name, log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log has more to say than the exit code
		close(p.exited)
	}()
	return p, nil
}

// await waits until the process is ready. It gives up at once when the process has ended.
func (p *process) await(ctx context.Context, ready func() error) error {
	err := eventually(ctx, time.Minute, func() error {
		select {
		case <-p.exited:
			return permanent{errors.New("it has stopped")}
		default:
			return ready()
		}
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, p.tail())
	}
	return nil
}

// stop stops the process. It returns an error if it does not stop within twenty seconds, or
// had stopped before, or stopped with an error.
func (p *process) stop() error {
	if p == nil {
		return errors.New("it never started")
	}
	select {
	case <-p.exited:
		return fmt.Errorf("%s had stopped: %s\n%s", p.name, p.cmd.ProcessState, p.tail())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("%s did not stop within twenty seconds", p.name), p.cmd.Process.Kill())
	}
	if code := p.cmd.ProcessState.ExitCode(); code > 0 {
		return fmt.Errorf("%s stopped with exit code %d:\n%s", p.name, code, p.tail())
	}
	return nil
}

func (p *process) tail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4<<10):])
}

// permanent is an error after which there is no point in trying again.
type permanent struct{ error }

// eventually tries until there is no error, or time is up.
func eventually(ctx context.Context, timeout time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := try()
		var stop permanent
		if err == nil || errors.As(err, &stop) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s still: %w", timeout, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

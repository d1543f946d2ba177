package show

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
)

// Step is one thing that is shown. Steps build upon the ones before.
type Step struct {
	Name string
	Run  func(ctx context.Context) error
}

// Walkthrough is an example on a control plane.
type Walkthrough interface {
	// Steps returns the steps, in order.
	Steps() []Step
	// Leave prepares something to look at, after all steps.
	Leave(ctx context.Context) error
	// Close stops what runs beside the control plane.
	Close() error
}

// Demo is the main function of a command that shows a walkthrough on a control plane of its
// own, and whether each step passed. If keep is set, everything is left running at the end,
// until interrupted. The process ends with exit code 1 if not all steps passed.
func Demo(keep bool, open func(*controlplane.ControlPlane) (Walkthrough, error), options ...controlplane.Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := demo(ctx, keep, open, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// demo returns whether all steps passed.
func demo(ctx context.Context, keep bool, open func(*controlplane.ControlPlane) (Walkthrough, error), options []controlplane.Option) (ok bool, err error) {
	begin := time.Now()
	fmt.Println("Starting etcd and kube-apiserver …")
	cp, err := controlplane.Start(ctx, options...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	fmt.Printf("The control plane is ready after %.1f s.\n", time.Since(begin).Seconds())
	walkthrough, err := open(cp)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, walkthrough.Close()) }()

	ok = run(ctx, walkthrough.Steps())
	if keep && ctx.Err() == nil {
		kubeconfig, err := cp.Kubeconfig(cp.Config())
		if err != nil {
			return false, err
		}
		leave(ctx, walkthrough, kubeconfig, cp.Kubectl())
	}
	return ok, nil
}

// leave leaves everything running until the context ends. It goes on even if there is
// nothing to look at, so that one can see why.
func leave(ctx context.Context, walkthrough Walkthrough, kubeconfig, kubectl string) {
	if err := walkthrough.Leave(ctx); err != nil {
		fmt.Printf("✗ %v\n", err)
	}
	fmt.Printf("\nEverything is left running. In another terminal:\n\n  export KUBECONFIG=%s\n  %s get pizzas -A\n\nInterrupt to stop.\n", kubeconfig, kubectl)
	<-ctx.Done()
}

// run runs the steps, and returns whether all passed.
func run(ctx context.Context, steps []Step) bool {
	passed := 0
	for i, step := range steps {
		fmt.Printf("\n▸ %d/%d %s\n", i+1, len(steps), step.Name)
		begin := time.Now()
		if err := step.Run(ctx); err != nil {
			fmt.Printf("✗ %v\n", err)
		} else {
			passed++
			fmt.Printf("✓ %.1f s\n", time.Since(begin).Seconds())
		}
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Printf("\ndemo: %d steps, %d passed, %d failed\n", len(steps), passed, len(steps)-passed)
	return passed == len(steps)
}

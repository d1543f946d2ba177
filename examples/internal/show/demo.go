package show

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Step is one thing that is shown. Steps build upon the ones before.
type Step struct {
	Name string
	Run  func(ctx context.Context) error
}

// Walkthrough is an example on a cluster.
type Walkthrough interface {
	// Steps returns the steps, in order.
	Steps() []Step
	// Leave prepares something to look at, after all steps.
	Leave(ctx context.Context) error
	// Close stops what runs beside the cluster.
	Close() error
}

// Demo is the main function of a command that shows a walkthrough on the cluster that start starts,
// and whether each step passed. If keep is set, everything is left running at the end, until
// interrupted. The process ends with exit code 1 if not all steps passed.
func Demo(keep bool, start func(context.Context) (Cluster, error), open func(Cluster) (Walkthrough, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := demo(ctx, keep, start, open)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// demo returns whether all steps passed.
func demo(ctx context.Context, keep bool, start func(context.Context) (Cluster, error), open func(Cluster) (Walkthrough, error)) (ok bool, err error) {
	begin := time.Now()
	cluster, err := start(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fmt.Printf("It is ready after %.1f s.\n", time.Since(begin).Seconds())
	walkthrough, err := open(cluster)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, walkthrough.Close()) }()

	ok = run(ctx, walkthrough.Steps())
	if keep && ctx.Err() == nil {
		kubeconfig, err := cluster.Kubeconfig(cluster.Config())
		if err != nil {
			return false, err
		}
		leave(ctx, walkthrough, kubeconfig, cluster.Kubectl())
	}
	return ok, nil
}

// leave leaves everything running until the context ends. It goes on even if there is
// nothing to look at, so that one can see why.
func leave(ctx context.Context, walkthrough Walkthrough, kubeconfig, kubectl string) {
	if err := walkthrough.Leave(ctx); err != nil {
		fmt.Printf("✗ %v\n", err)
	}
	fmt.Printf("\nEverything is left running. In another terminal:\n\n  export KUBECONFIG=%s\n  %s get pizzas -A\n\nInterrupt to stop.\n", Quote([]string{kubeconfig}), Quote([]string{kubectl}))
	<-ctx.Done()
}

// run runs the steps until one fails, on which the next ones build, and returns whether all passed.
func run(ctx context.Context, steps []Step) bool {
	passed, failed := 0, 0
	for i, step := range steps {
		fmt.Printf("\n▸ %d/%d %s\n", i+1, len(steps), step.Name)
		begin := time.Now()
		if err := step.Run(ctx); err != nil {
			fmt.Printf("✗ %v\n", err)
			failed++
			break
		}
		passed++
		fmt.Printf("✓ %.1f s\n", time.Since(begin).Seconds())
	}
	fmt.Printf("\ndemo: %d steps, %d passed, %d failed\n", len(steps), passed, failed)
	return failed == 0
}

// Command pizza-demo shows the pizza operator on a real control plane: each
// command, what it prints, and whether that is what it should. `make demo` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
	"github.com/crdkit/crdkit/internal/controlplane"
)

func main() {
	operator := flag.String("operator", "", "The `path` of the pizza-operator binary.")
	keep := flag.Bool("keep", false, "Leave everything running at the end, until interrupted.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := demo(ctx, *operator, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// demo returns whether all steps passed.
func demo(ctx context.Context, operator string, keep bool) (ok bool, err error) {
	begin := time.Now()
	fmt.Println("Starting etcd and kube-apiserver …")
	cp, err := controlplane.Start(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if stopErr := cp.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Printf("The control plane is ready after %.1f s.\n", time.Since(begin).Seconds())
	restaurant, err := walkthrough.Open(cp, operator, os.Stdout)
	if err != nil {
		return false, err
	}
	defer func() {
		if closeErr := restaurant.Close(); err == nil {
			err = closeErr
		}
	}()

	steps := walkthrough.Steps()
	passed, failed := 0, 0
	for i, step := range steps {
		fmt.Printf("\n▸ %d/%d %s\n", i+1, len(steps), step.Name)
		begin := time.Now()
		if err := step.Run(ctx, restaurant); err != nil {
			failed++
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
	if keep && ctx.Err() == nil {
		if err := walkthrough.Menu(ctx, restaurant); err != nil {
			return false, err
		}
		fmt.Printf("\nEverything is left running. In another terminal:\n\n  export KUBECONFIG=%s\n  %s get pizzas -A\n\nInterrupt to stop.\n", restaurant.Kubeconfig(), cp.Kubectl())
		<-ctx.Done()
	}
	return failed == 0 && passed == len(steps), nil
}

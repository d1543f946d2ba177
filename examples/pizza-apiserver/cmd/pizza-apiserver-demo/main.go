// Command pizza-apiserver-demo shows the pizza restaurant as an aggregated API server: each
// command, what it prints, and whether that is what it should. `make demo-apiserver` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/internal/walkthrough"
	"github.com/crdkit/crdkit/internal/controlplane"
)

func main() {
	server := flag.String("server", "", "The `path` of the pizza-apiserver binary.")
	keep := flag.Bool("keep", false, "Leave everything running at the end, until interrupted.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := demo(ctx, *server, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// demo returns whether all steps passed.
func demo(ctx context.Context, server string, keep bool) (ok bool, err error) {
	begin := time.Now()
	fmt.Println("Starting etcd and kube-apiserver …")
	cp, err := controlplane.Start(ctx, controlplane.Aggregation())
	if err != nil {
		return false, err
	}
	defer func() {
		if stopErr := cp.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Printf("The control plane is ready after %.1f s.\n", time.Since(begin).Seconds())
	restaurant, err := walkthrough.Open(cp, server, os.Stdout)
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

// Command decision is the third part of `make differential`: it asks a real API server and schema/offline
// whether users may send random requests, and compares the answers.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/decision"
)

func main() {
	n := flag.Int("n", 20000, "how many decisions")
	seed := flag.Uint64("seed", 0, "of the roles and requests; 0 is one at random")
	flag.Parse()
	klog.SetLogger(klog.Logger{}) // of the offline server
	if *seed == 0 {
		*seed = rand.Uint64N(1<<32) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "decision:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64) error {
	cp, err := controlplane.Start(ctx)
	if err != nil {
		return err
	}
	defer cp.Stop()
	out, err := decision.Run(ctx, cp, n, seed)
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	for _, d := range out.Differences {
		fmt.Println("---", d)
	}
	fmt.Printf("decisions: %d, %d of them allow the request, %d differences, seed %d\n", out.Decisions, out.Allowed, len(out.Differences), seed)
	if len(out.Differences) > 0 {
		return fmt.Errorf("%d differences", len(out.Differences))
	}
	return nil
}

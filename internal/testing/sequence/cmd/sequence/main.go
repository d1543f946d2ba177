// Command sequence is the second part of `make differential`: it sends random sequences of
// requests to a real API server and to schema/apiservertest, asks both whether users may send random
// requests, and compares what comes back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/decision"
	"github.com/crdkit/crdkit/internal/testing/sequence"
)

func main() {
	n := flag.Int("n", 20000, "how many requests, and how many decisions")
	seed := flag.Uint64("seed", 0, "of the sequences and decisions; 0 is one at random")
	flag.Parse()
	klog.SetLogger(klog.Logger{}) // of the offline server
	if *seed == 0 {
		*seed = rand.Uint64N(1<<32) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "sequence:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64) error {
	cp, err := controlplane.Start(ctx)
	if err != nil {
		return err
	}
	defer cp.Stop()
	begin := time.Now()
	out, err := sequence.Run(ctx, cp, n, seed)
	if out != nil {
		for i, d := range out.Disagreements {
			fmt.Printf("--- disagreement %d: %s\n", i+1, d)
		}
		fmt.Printf("seed: %d, took: %s\n", seed, time.Since(begin).Round(time.Second))
		fmt.Printf("sequences: %d requests, %d disagreements\n", out.Requests, len(out.Disagreements))
	}
	if err == nil && len(out.Disagreements) > 0 {
		err = fmt.Errorf("%d disagreements", len(out.Disagreements))
	}
	return errors.Join(err, decide(ctx, cp, n, seed))
}

// decide compares the decisions about random requests.
func decide(ctx context.Context, cp *controlplane.ControlPlane, n int, seed uint64) error {
	out, err := decision.Run(ctx, cp, n, seed)
	if err != nil {
		return err
	}
	for _, d := range out.Differences {
		fmt.Println("---", d)
	}
	fmt.Printf("decisions: %d, %d of them allow the request, %d differences\n", out.Decisions, out.Allowed, len(out.Differences))
	if len(out.Differences) > 0 {
		return fmt.Errorf("%d differences", len(out.Differences))
	}
	return nil
}

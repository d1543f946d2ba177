// Command sequence is the second part of `make differential`: it sends random sequences of
// requests to a real API server, and to schema/apiservertest and an aggregated API server of
// scheme/resource, and compares what comes back. It also compares whether users may send random
// requests to a real API server and to schema/apiservertest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/decision"
	"github.com/crdkit/crdkit/test/sequence"
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
	disagreements := show(out)
	if out != nil {
		fmt.Printf("seed: %d, took: %s\n", seed, time.Since(begin).Round(time.Second))
		fmt.Printf("sequences: %d requests, %d disagreements\n", out.Requests, len(out.Disagreements))
	}
	return errors.Join(err, disagreements, aggregated(ctx, cp, n, seed), decide(ctx, cp, n, seed))
}

// aggregated compares custom resources with the same kinds of an aggregated API server.
func aggregated(ctx context.Context, cp *controlplane.ControlPlane, n int, seed uint64) error {
	out, err := sequence.RunAggregated(ctx, cp, n, seed)
	if out == nil {
		return err
	}
	disagreements := show(out)
	known := 0
	for _, name := range slices.Sorted(maps.Keys(out.Known)) {
		known += out.Known[name]
		fmt.Printf("known: %s: %d: %s\n", name, out.Known[name], sequence.Cause(name))
	}
	fmt.Printf("differential: aggregated: %d requests, %d disagreements, %d known differences\n", out.Requests, len(out.Disagreements), known)
	return errors.Join(err, disagreements)
}

// show prints the disagreements, and returns an error if there are any.
func show(out *sequence.Result) error {
	if out == nil || len(out.Disagreements) == 0 {
		return nil
	}
	for i, d := range out.Disagreements {
		fmt.Printf("--- disagreement %d: %s\n", i+1, d)
	}
	return fmt.Errorf("%d disagreements", len(out.Disagreements))
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

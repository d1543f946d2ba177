// Command differential is `make differential`: it sends requests to a real API server and to package
// schema, and compares what comes back.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/crdfuzz"
	"github.com/crdkit/crdkit/test/differential"
)

func main() {
	n := flag.Int("n", 20000, "how many requests; those of the handwritten definitions come first, and all of them")
	seed := flag.Uint64("seed", 0, "of the random definitions and requests; 0 is one at random")
	only := flag.Int("only", -1, "the number of a random definition, to run that alone")
	shrink := flag.Duration("shrink", time.Minute, "how long a disagreement is made smaller")
	flag.Parse()
	klog.SetLogger(klog.Logger{}) // the warnings of definitions
	if *seed == 0 {
		*seed = rand.Uint64N(1<<32) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tally, err := run(ctx, *n, *seed, *only, *shrink)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
	if len(tally.Disagreements()) > 0 || len(tally.Unexpected()) > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, only int, shrink time.Duration) (_ *differential.Tally, err error) {
	cp, err := controlplane.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := cp.Stop(); err == nil {
			err = stopped
		}
	}()
	server, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	if err != nil {
		return nil, err
	}
	fmt.Printf("seed: %d\n", seed)
	begin := time.Now()
	tally := &differential.Tally{}
	if only < 0 {
		files, err := filepath.Glob("schema/testdata/traps/*.yaml")
		if err != nil {
			return nil, err
		}
		var suites []*differential.Suite
		for _, file := range files {
			suite, err := differential.ReadSuite(file)
			if err != nil {
				return nil, err
			}
			suites = append(suites, suite)
		}
		if err := differential.RunAll(ctx, server, tally, suites); err != nil {
			return nil, err
		}
		handwritten := tally.Requests()
		fmt.Printf("handwritten: %d definitions, %d requests\n", len(suites), handwritten)
		tally.Limit = max(n, handwritten)
	}
	made, err := crdfuzz.Run(ctx, server, tally, seed, only)
	if err != nil {
		return nil, err
	}
	fmt.Printf("random: %d definitions accepted, %d refused\n", made.Accepted, made.Refused)
	took := time.Since(begin)
	for i, d := range tally.Disagreements() {
		if i < 5 {
			d = differential.Shrink(ctx, server, d, shrink)
		}
		fmt.Printf("--- disagreement %d: %s\n", i+1, d)
	}
	if len(tally.Disagreements()) > 0 {
		fmt.Printf("again: bin/differential -seed %d -only DEFINITION\n", seed)
	}
	for _, fault := range tally.Unexpected() {
		fmt.Println("--- not what the case says:", fault)
	}
	fmt.Printf("took: %s\n", took.Round(time.Second))
	fmt.Print(tally.Summary())
	return tally, nil
}

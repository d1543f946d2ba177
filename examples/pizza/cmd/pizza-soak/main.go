// Command pizza-soak runs two replicas of the pizza operator on a real control plane
// under fault injection, and counts the requests that fail. `make soak`
// runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/examples/pizza/internal/soak"
	"github.com/crdkit/crdkit/test/controlplane"
)

func main() {
	operator := flag.String("operator", "", "The `path` of the pizza-operator binary.")
	duration := flag.Duration("t", 2*time.Minute, "How long.")
	keep := flag.Bool("keep", false, "Leave the logs, and say where they are.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := run(ctx, *operator, *duration, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pizza-soak:", err)
	}
	if report != nil {
		fmt.Println(report)
	}
	if err != nil || report.Failed > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, operator string, duration time.Duration, keep bool) (_ *soak.Report, err error) {
	fmt.Println("Starting etcd and kube-apiserver …")
	cp, err := controlplane.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if keep {
			kept := cp.Dir() + "-logs"
			if copyErr := os.CopyFS(kept, os.DirFS(cp.Dir())); copyErr != nil {
				fmt.Fprintln(os.Stderr, "pizza-soak: not all of the logs were kept:", copyErr)
			}
			fmt.Println("The logs are in", kept)
		}
		if stopErr := cp.Stop(); err == nil {
			err = stopErr
		}
	}()
	report, err := soak.Run(ctx, cp, operator, duration, os.Stdout)
	if err != nil {
		return nil, err
	}
	return report, report.Problems
}

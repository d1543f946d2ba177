// Command matrix is `make test-matrix`: it runs the tests that need a control plane, and the
// command differential, against the releases of Kubernetes in some folders.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/test/matrix"
)

func main() {
	modules := flag.String("modules", ".", "the folders of the modules whose tests are run")
	n := flag.Int("n", 20000, "how many requests of the command differential")
	seed := flag.Uint64("seed", 0, "the seed of the command differential; 0 is one at random")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Fields(*modules), flag.Args(), "-n", fmt.Sprint(*n), "-seed", fmt.Sprint(*seed)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run prints a line for each release in the end, and returns all that went wrong.
func run(ctx context.Context, modules, dirs []string, differential ...string) error {
	var releases []*matrix.Release
	for _, dir := range dirs {
		r, err := matrix.Open(ctx, dir)
		if err != nil {
			return err
		}
		releases = append(releases, r)
	}
	tests, err := matrix.Needing(ctx, modules)
	if err != nil {
		return err
	}
	fmt.Printf("%d tests need a control plane\n", len(tests))
	var lines []string
	var errs []error
	for _, r := range releases {
		line, err := runOne(ctx, r, tests, differential)
		lines = append(lines, line)
		errs = append(errs, err)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	return errors.Join(errs...)
}

// runOne returns the line of one release.
func runOne(ctx context.Context, r *matrix.Release, tests []matrix.Test, differential []string) (string, error) {
	log, err := os.Create(filepath.Join("bin", "matrix-"+r.Version+".log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	fmt.Printf("%s: the log is %s\n", r.Version, log.Name())
	begin := time.Now()
	count, err := r.Test(ctx, tests, log)
	failures := count.Failures()
	fmt.Print(failures)
	for _, reason := range count.Reasons {
		fmt.Printf("%s: skipped: %s\n", r.Version, reason)
	}
	if failures != "" { // also of a package, whose tests may all have passed
		err = errors.Join(err, fmt.Errorf("matrix: %s: %d tests failed: see %s", r.Version, count.Failed, log.Name()))
	}
	compared, failed := r.Differential(ctx, log, filepath.Join("bin", "differential"), differential...)
	if failed != nil {
		failed = fmt.Errorf("matrix: %s: differential: %w: see %s", r.Version, failed, log.Name())
	}
	return fmt.Sprintf("matrix: %s: %s; %s; took %s", r.Version, count, compared, time.Since(begin).Round(time.Second)), errors.Join(err, failed)
}

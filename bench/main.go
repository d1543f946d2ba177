// Command bench measures crdkit and its peers alternately in one process, and prints one line
// for each figure: `ratio <name> <value>`. `make bench` runs it.
//
// A value is the median of the rounds. In each round, both sides run for the same time, so that
// other programs on the machine slow down both.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	rounds := flag.Int("rounds", 9, "How many rounds to take the median of.")
	each := flag.Duration("each", 300*time.Millisecond, "How long a side runs in a round.")
	only := flag.String("only", "", "The part to run, such as e2e.")
	flag.Parse()
	log.SetLogger(logr.Discard()) // the peer's
	b := bench{rounds: *rounds, each: *each}
	type part struct {
		name string
		run  func() error
	}
	parts := []part{
		{"conversion", b.conversion}, {"lossless", b.lossless}, {"admission", b.admission}, {"reference", b.reference}, {"schema", b.schema},
		{"rehearse", b.rehearse}, {"e2e", b.endToEnd}, {"offline", b.offline}, {"size", size}, {"roundtrip", b.roundtrip},
	}
	if *only != "" {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.name != *only })
	}
	if len(parts) == 0 {
		exitOn(fmt.Errorf("-only %q, expected the name of a part, such as e2e", *only))
	}
	for _, p := range parts {
		exitOn(p.run())
	}
}

func (b bench) conversion() error {
	if err := compareAnswers(crdkitConversion(), peerConversion()); err != nil {
		return err
	}
	for _, n := range []int{1, 100, 1000} {
		b.faster(fmt.Sprintf("conversion/%d", n), review(n, 0), crdkitConversion(), peerConversion())
	}
	runtime.GOMAXPROCS(1)
	b.faster("conversion/1000/1cpu", review(1000, 0), crdkitConversion(), peerConversion())
	runtime.GOMAXPROCS(2)
	body := review(1000, 0)
	ours, theirs := crdkitConversion(), peerConversion()
	ratio("conversion/1000/allocs", testing.AllocsPerRun(20, func() { post(theirs, body) })/testing.AllocsPerRun(20, func() { post(ours, body) }))
	b.compare("conversion/1000/jsonvalid", func() { post(ours, body) }, func() { json.Valid(body) }, func(ours, valid float64) float64 { return ours / valid })

	oursTLS, theirsTLS, stop := servers()
	var figures []float64
	for range b.rounds {
		figures = append(figures, oursTLS.perSecond(review(1, 0), b.each)/theirsTLS.perSecond(review(1, 0), b.each))
	}
	stop()
	slices.Sort(figures)
	ratio("conversion/tls/1", figures[len(figures)/2])

	fmt.Println("how the cost of a conversion grows, in µs an object:")
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		body := review(n, 0)
		fmt.Printf("  %6d objects              %8.2f\n", n, b.median(func() { post(ours, body) })*1e6/float64(n))
	}
	for _, managed := range []int{0, 2 << 10, 20 << 10, 200 << 10} {
		body := review(10, managed)
		fmt.Printf("  %6d KB of managedFields  %8.2f\n", managed>>10, b.median(func() { post(ours, body) })*1e6/10)
	}
	return nil
}

// exitOn ends the program if err is not nil.
func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ratio(name string, value float64) { fmt.Printf("ratio %s %.2f\n", name, value) }

type bench struct {
	rounds int
	each   time.Duration
}

// faster prints how many times faster our handler answers than the peer's.
func (b bench) faster(name string, body []byte, ours, theirs http.Handler) {
	b.compare(name, func() { post(ours, body) }, func() { post(theirs, body) }, func(ours, theirs float64) float64 { return theirs / ours })
}

// compare prints the median of a figure that is computed from the times of both sides.
func (b bench) compare(name string, ours, theirs func(), figure func(ours, theirs float64) float64) {
	var figures []float64
	for range b.rounds {
		figures = append(figures, figure(b.seconds(ours), b.seconds(theirs)))
	}
	slices.Sort(figures)
	ratio(name, figures[len(figures)/2])
}

func (b bench) median(f func()) float64 {
	var all []float64
	for range b.rounds {
		all = append(all, b.seconds(f))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// seconds returns the duration of one call.
func (b bench) seconds(f func()) float64 {
	f() // pools and caches are warm in production
	n := 0
	begin := time.Now()
	for ; time.Since(begin) < b.each; n++ {
		f()
	}
	return time.Since(begin).Seconds() / float64(n)
}

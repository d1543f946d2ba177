package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crdkit/crdkit/test/controlplane"
)

// Report is the result.
type Report struct {
	Requests, Failed, Rotations, Kills, Updates int
	// Problems are what else is wrong: a replica that did not stop in order, or that takes
	// more and more.
	Problems error
}

// String is the line that scripts read.
func (r *Report) String() string {
	return fmt.Sprintf("soak: %d requests, %d failed, %d rotations, %d kills, %d rolling updates", r.Requests, r.Failed, r.Rotations, r.Kills, r.Updates)
}

// flags make everything happen within seconds that takes months otherwise.
var flags = []string{
	"--ca-rotate-after=3s", "--ca-lifetime=60s", "--ca-settle=1s",
	"--shutdown-delay=1s", "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s",
}

// Run soaks the operator, which binary is, for a while, and writes what there is to say to out,
// but not the last line.
func Run(ctx context.Context, cp *controlplane.ControlPlane, binary string, duration time.Duration, out io.Writer) (*Report, error) {
	r, err := open(ctx, cp, binary, flags)
	if err != nil {
		return nil, err
	}
	ledger := newLedger()
	l := &load{client: r.client, ledger: ledger}
	f := &faults{restaurant: r, ledger: ledger}
	begin := time.Now()
	soaking, stop := context.WithTimeout(ctx, duration)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { l.run(soaking) })
	running.Go(func() { (&probes{restaurant: r, ledger: ledger}).run(soaking) })
	report := &Report{}
	running.Go(func() { report.Rotations = r.countRotations(soaking) })
	spared := begin.Add(duration / 2)
	var faultErr error
	running.Go(func() {
		if faultErr = f.run(soaking, spared); faultErr != nil {
			stop()
		}
	})
	var samples []footprint
	running.Go(func() { samples = r.sample(soaking, r.operators[0], spared.Add(duration/20)) })
	running.Wait()

	requests, failed, excused := ledger.judge()
	for _, n := range requests {
		report.Requests += n
	}
	report.Failed, report.Kills, report.Updates = len(failed), f.kills, f.updates
	grown := growth(samples, out)
	took := time.Since(begin)
	report.Problems = errors.Join(faultErr, f.idle(min(took, duration), report.Rotations), grown, r.close())
	tell(out, ledger, requests, failed, excused, f, took)
	return report, ctx.Err()
}

func tell(out io.Writer, ledger *ledger, requests map[string]int, failed []failure, excused map[string]int, f *faults, took time.Duration) {
	fmt.Fprintf(out, "%s of soaking; two replicas:\n", took.Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(requests)) {
		fmt.Fprintf(out, "  %6d × %s\n", requests[kind], kind)
	}
	fmt.Fprintf(out, "  %d replicas were killed, %d restarted in order, for %d rolling updates among others; the Secret was deleted %d times, corrupted %d times; %d CA bundles were overwritten",
		f.kills, f.restarts, f.updates, f.deletions, f.corruptions, f.overwrites)
	if len(f.repairs) > 0 {
		slices.Sort(f.repairs)
		fmt.Fprintf(out, " and repaired within %s (median), %s (longest)", f.repairs[len(f.repairs)/2].Round(time.Millisecond), f.repairs[len(f.repairs)-1].Round(time.Millisecond))
	}
	fmt.Fprintln(out)
	for _, why := range slices.Sorted(maps.Keys(excused)) {
		fmt.Fprintf(out, "  %d requests failed that no replica could have saved: %s\n", excused[why], why)
	}
	for i, f := range failed {
		if i == 20 {
			fmt.Fprintf(out, "  … and %d more\n", len(failed)-i)
			break
		}
		fmt.Fprintf(out, "  failed: %s\n    with: %s\n", strings.TrimSpace(f.String()), ledger.around(f))
	}
}

// sample measures a replica every half second from a time on until ctx ends.
func (r *restaurant) sample(ctx context.Context, o *operator, from time.Time) (samples []footprint) {
	if !sleep(ctx, time.Until(from)) {
		return nil
	}
	for sleep(ctx, 500*time.Millisecond) {
		connections := float64(r.balancer.Connections(o.addr))
		if s, err := o.measure(ctx); err == nil {
			s.connections = connections
			s.goroutines -= connections
			samples = append(samples, s)
		}
	}
	return samples
}

// growth compares the quarters of the time, by the least of each: what is in use comes and
// goes. A fifth of the time passes before: a replica that has just started has few clients.
func growth(samples []footprint, out io.Writer) error {
	n := len(samples) / 5
	if n == 0 {
		return errors.New("memory of a replica: no time to measure it")
	}
	samples = samples[n:]
	var quarters []footprint
	for q := range 4 {
		quarters = append(quarters, least(samples[q*n:(q+1)*n]))
	}
	fmt.Fprintf(out, "replica A at work, the least in each quarter of %s:\n", (time.Duration(len(samples)) * 500 * time.Millisecond).Round(time.Second))
	show := func(what, form string, value func(footprint) float64) {
		fmt.Fprintf(out, "  %-22s", what)
		for _, q := range quarters {
			fmt.Fprintf(out, form, value(q))
		}
		fmt.Fprintln(out)
	}
	show("connections", "%8.0f", func(f footprint) float64 { return f.connections })
	show("goroutines beside them", "%8.0f", func(f footprint) float64 { return f.goroutines })
	show("MiB of heap", "%8.1f", func(f footprint) float64 { return f.heapBytes / (1 << 20) })
	show("MiB resident", "%8.1f", func(f footprint) float64 { return f.residentBytes / (1 << 20) })
	first, last := quarters[0], quarters[3]
	// An idle connection takes some 30 KiB, with its buffers and those of TLS; with the race
	// detector, many times that of resident memory.
	more := max(0, last.connections-first.connections)
	if last.goroutines > first.goroutines+20 || last.heapBytes > first.heapBytes*1.25+(4<<20)+more*(48<<10) || last.residentBytes > first.residentBytes*1.5+(16<<20)+more*(512<<10) {
		return errors.New("a replica takes more and more")
	}
	return nil
}

func least(samples []footprint) footprint {
	out := samples[0]
	for _, s := range samples {
		out.goroutines = min(out.goroutines, s.goroutines)
		out.connections = min(out.connections, s.connections)
		out.heapBytes = min(out.heapBytes, s.heapBytes)
		out.residentBytes = min(out.residentBytes, s.residentBytes)
	}
	return out
}

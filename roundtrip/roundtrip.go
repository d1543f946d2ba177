package roundtrip

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/crdkit/crdkit/conversion"
)

// Test checks each [Law] for each kind of the registry, on each path between two versions of the
// kind, in a subtest that is named for the kind, the path and the law, such as
// Pizza/v1alpha1→v1beta1→v1alpha1/round-trip.
//
// If the hub is the internal version, Test also checks these paths:
//
//   - from each version to the internal version and back.
//   - from the internal version to each version and back, with [RoundTrip] only. A version with
//     [conversion.Lossless] has no such path, because the fields that it lacks are preserved
//     outside of the conversion functions.
//
// Objects are generated at random, with the option [CRD] from the schema, and otherwise from the Go
// type of the path's first version, by sigs.k8s.io/randfill and the functions of [Funcs]. If the
// first version has no Go type, objects are generated in the newest version that has one, and
// converted.
//
// Test compares the JSON of objects. The values null, [] and {} and a missing field differ, and so
// do numbers such as 1 and 1.0. The order of keys does not matter. The returned object may also
// equal the JSON that the Go type of the version writes after it has decoded the original object:
// the type may always write a struct without omitzero, or write a quantity of 1000m as 1.
// [Normalize] declares further differences that do not matter.
//
// The test fails at once if [conversion.Registry.Check] returns an error, or if an option or an
// environment variable is invalid.
func Test(t *testing.T, reg *conversion.Registry, opts ...Option) {
	t.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		t.Fatal(err)
	}
	cfg.printSeed(t.Name())
	for _, kind := range reg.Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			newest := kind.Versions[len(kind.Versions)-1]
			if slices.Contains(kind.Versions, kind.Hub) && kind.Hub != newest {
				t.Logf("%s is the hub, and %s is not: pass the function that converts to the hub first", kind.Hub, newest)
			}
			testAll(t, cfg, subjects(reg, cfg, kind))
		})
	}
}

// testAll runs a subtest for each path, and in it one for each law. It then logs how much was checked.
func testAll(t *testing.T, cfg *config, all []*subject) {
	budget, reported, began := cfg.budget(len(all)), causes{}, time.Now()
	counts := map[string]*coverage{}
	checked, stopped := 0, 0
	for i, s := range all {
		s.reported = reported
		t.Run(s.route()+"/"+string(s.law), func(t *testing.T) {
			defer func() {
				if checked += s.checked; s.stopped {
					stopped++
				}
			}()
			s.test(t, budget.of(s.law).until(t, cfg, began, len(all)-i), counts)
		})
	}
	if checked == 0 && stopped > 0 {
		t.Error("the time was over before an object was checked: see -timeout of go test")
	}
	if !testing.Verbose() && stopped == 0 {
		return
	}
	summary := fmt.Sprintf("%d objects checked in %v", checked, time.Since(began).Round(100*time.Millisecond))
	if stopped > 0 {
		summary += fmt.Sprintf("; the time was over in %d of %d tests, see roundtrip.Iterations", stopped, len(all))
	}
	t.Log(summary)
	for _, version := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %s", version, counts[version].report())
	}
}

func (s *subject) test(t *testing.T, b budget, counts map[string]*coverage) {
	if reason, skip := s.cfg.without[s.law]; skip {
		t.Skip(reason)
	}
	for _, declared := range s.declared() {
		t.Log(declared)
	}
	if s.law == Drift {
		for _, difference := range s.drift() {
			t.Error(difference)
		}
		return
	}
	if version := s.path[0]; testing.Verbose() && s.make == nil && s.checkValue == nil && s.law != Decoding {
		if g, err := s.generator(version); err == nil && counts[version] == nil {
			counts[version] = newCoverage(g.leaves())
		}
		s.coverage = counts[version]
	}
	found, err := s.search(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if s.stopped = found == nil && s.tried < b.least; s.stopped {
		report := t.Logf
		switch {
		case s.cfg.iterations > 0:
			report = t.Errorf
		case s.tried == 0:
			report = t.Skipf
		}
		report("the time is over after %d of %d objects", s.tried, b.least)
	}
	if found == nil {
		return
	}
	again := indent(command(t.Name(), s.cfg.seed, found.iteration+1))
	if found.reported != "" {
		t.Errorf("The %s law does not hold either: %s has the report. To see an object for this law, run:\n\n%s", s.law, found.reported, again)
		return
	}
	s.reported.add(found)
	t.Errorf("%s It was made from object %d of seed %d. To reproduce the failure, run:\n\n%s", found.report(), found.iteration+1, s.cfg.seed, again)
}

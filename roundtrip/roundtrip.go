package roundtrip

import (
	"slices"
	"testing"

	"github.com/crdkit/crdkit/conversion"
)

// Test checks each [Law] for each kind of the registry, on each path between two of its
// versions. There is a subtest for each, named by kind, path and law, such as
// Pizza/v1alpha1→v1beta1→v1alpha1/round-trip. If the hub is the internal version, there are
// also the paths from each version to it and back, and from it to each version and back; the
// latter not for versions that [conversion.Lossless] makes so.
//
// The objects are random. With [CRD], they are made by the schema. Without it, they are made of
// the Go type of the path's first version, by sigs.k8s.io/randfill and the functions of [Funcs],
// and are what that type writes as JSON. If that version has no Go type, they are made in
// another one, and converted.
//
// Objects are equal if their JSON is: null, [], {} and absence all differ, and numbers
// are the same if their text is. The order of members does not count. An object that comes
// back to a version with a Go type is compared with what that type writes when it has read
// the object: that it always writes a struct without omitzero, or writes a quantity of
// 1000m as 1, is not the conversion's doing. [Normalize] allows more.
//
// The test fails at once if [conversion.Registry.Check] finds a fault in the registry, or
// if an option or an environment variable makes no sense.
func Test(t *testing.T, reg *conversion.Registry, opts ...Option) {
	t.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range reg.Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			newest := kind.Versions[len(kind.Versions)-1]
			if slices.Contains(kind.Versions, kind.Hub) && kind.Hub != newest {
				t.Logf("%s is the hub, and %s is not: of two functions, the first leads to the hub", kind.Hub, newest)
			}
			testAll(t, cfg, subjects(reg, cfg, kind))
		})
	}
}

// testAll runs a subtest for each path, and in it one for each law.
func testAll(t *testing.T, cfg *config, all []*subject) {
	budget := cfg.budget(len(all))
	for _, s := range all {
		t.Run(s.route()+"/"+string(s.law), func(t *testing.T) { s.test(t, budget) })
	}
}

func (s *subject) test(t *testing.T, b budget) {
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
	found, err := s.search(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if found != nil {
		t.Errorf("%s It was made from object %d of seed %d. The same again:\n\n%s", found.report(), found.iteration+1, s.cfg.seed, indent(command(t.Name(), s.cfg.seed, found.iteration+1)))
	}
}

package reference

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

// model is an index that is plainly right.
type model map[cache.ObjectName][]cache.ObjectName

func (m model) of(target cache.ObjectName) (names []cache.ObjectName) {
	for name, targets := range m {
		if slices.Contains(targets, target) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

// check compares an index with the model.
func (m model) check(t interface {
	Helper()
	Fatalf(string, ...any)
}, x *index, target cache.ObjectName) {
	t.Helper()
	want := m.of(target)
	got, count := x.of(target, -1, "")
	if count != len(want) || !slices.Equal(got, want) {
		t.Fatalf("%s is named by %d: %s", target, count, cmp.Diff(want, got))
	}
	first, count := x.of(target, 10, "")
	if count != len(want) || !slices.Equal(first, want[:min(10, len(want))]) {
		t.Fatalf("the first of %d are %v", count, first)
	}
	for _, namespace := range []string{"ns0", "ns1", "ns2", "default"} {
		outside := slices.DeleteFunc(slices.Clone(want), func(name cache.ObjectName) bool { return name.Namespace == namespace })
		first, count := x.of(target, 10, namespace)
		if count != len(outside) || !slices.Equal(first, outside[:min(10, len(outside))]) {
			t.Fatalf("outside %s the first of %d are %v, want %d", namespace, count, first, len(outside))
		}
	}
	u := x.targets[target]
	if (u == nil) != (len(want) == 0) {
		t.Fatalf("%s has %d users and the entry %v", target, len(want), u)
	}
}

// The index is exact after any steps.
func TestIndex_RandomSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, m := newIndex(), model{}
		name := func(prefix string, most int) *rapid.Generator[cache.ObjectName] {
			return rapid.Map(rapid.IntRange(0, most), func(i int) cache.ObjectName {
				return cache.NewObjectName(fmt.Sprintf("ns%d", i%2), fmt.Sprintf("%s%d", prefix, i))
			})
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			from := name("pizza", 12).Draw(t, "from")
			targets := rapid.SliceOfNDistinct(name("topping", 3), 0, 3, rapid.ID).Draw(t, "targets")
			slices.SortFunc(targets, compareNames)
			x.set(from, targets)
			m[from] = targets
			for i := range 4 {
				m.check(t, x, cache.NewObjectName(fmt.Sprintf("ns%d", i%2), fmt.Sprintf("topping%d", i)))
			}
		}
		for from := range m {
			x.set(from, nil)
		}
		if len(x.uses) > 0 || len(x.targets) > 0 {
			t.Fatalf("%d and %d are left", len(x.uses), len(x.targets))
		}
	})
}

// A change of one of many references does not compare all of them with all, which would take an hour while the index is locked.
func TestIndex_ManyTargets(t *testing.T) {
	targets := make([]cache.ObjectName, 400_000)
	for i := range targets {
		targets[i] = cache.NewObjectName("default", fmt.Sprintf("topping-%06d", i))
	}
	x, pizza := newIndex(), cache.NewObjectName("default", "pizza")
	x.set(pizza, targets)
	x.set(pizza, targets[1:])
	if gone, kept := x.targets[targets[0]], x.targets[targets[1]]; gone != nil || kept == nil {
		t.Errorf("the index has %v of the reference that is gone, and %v of another one", gone, kept)
	}
}

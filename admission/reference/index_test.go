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

// check compares an index with the model, and looks after the runs.
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
	if u == nil {
		return
	}
	for i, run := range u.runs {
		if len(run) == 0 || len(run) > maxRun {
			t.Fatalf("run %d has %d users", i, len(run))
		}
		if i > 0 && len(run)+len(u.runs[i-1]) <= maxRun/4 {
			t.Fatalf("runs %d and %d have %d and %d users and are not one", i-1, i, len(u.runs[i-1]), len(run))
		}
	}
}

func TestTheIndexIsExactWhateverHappens(t *testing.T) {
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
		if len(x.users) > 0 || len(x.targets) > 0 {
			t.Fatalf("%d and %d are left", len(x.users), len(x.targets))
		}
	})
}

func TestRunsSplitAndJoin(t *testing.T) {
	tomato := cache.NewObjectName("", "tomato")
	const n = 5 * maxRun
	for order, next := range map[string]func(i int) int{
		"in order":   func(i int) int { return i },
		"backwards":  func(i int) int { return n - 1 - i },
		"mixed":      func(i int) int { return i * 7919 % n }, // a prime
		"both sides": func(i int) int { return (i%2)*(n-1) + i/2*(1-i%2*2) },
	} {
		x, m := newIndex(), model{}
		for i := range n {
			from := cache.NewObjectName(fmt.Sprintf("ns%d", next(i)*3/n), fmt.Sprintf("p%05d", next(i)))
			x.set(from, []cache.ObjectName{tomato})
			m[from] = []cache.ObjectName{tomato}
			if i%97 == 0 {
				m.check(t, x, tomato)
			}
		}
		m.check(t, x, tomato)
		if u := x.targets[tomato]; order == "in order" && len(u.runs) != n/maxRun {
			t.Errorf("in order there are %d runs, want %d full ones", len(u.runs), n/maxRun)
		}
		for i := range n {
			at := next((i + n/3) % n)
			from := cache.NewObjectName(fmt.Sprintf("ns%d", at*3/n), fmt.Sprintf("p%05d", at))
			x.set(from, nil)
			delete(m, from)
			if i%97 == 0 {
				m.check(t, x, tomato)
			}
		}
		m.check(t, x, tomato)
	}
}

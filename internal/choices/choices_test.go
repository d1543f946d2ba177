package choices

import (
	"errors"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOf_GivesDrawsAndThenZeros(t *testing.T) {
	src := Of([]uint64{3, 0, 5})
	var got []uint64
	for range 5 {
		got = append(got, src.Uint64())
	}
	if diff := cmp.Diff([]uint64{3, 0, 5, 0, 0}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{3, 0, 5}, src.Stream()); diff != "" {
		t.Errorf("the stream has zeros at its end:\n%s", diff)
	}
}

// A part of a replay gets its draws, also if parts before it take fewer or more.
func TestReplay_PartsKeepTheirDraws(t *testing.T) {
	src := Of([]uint64{2, 3, 4, 5, 6})
	draws := func(src *Source, own int, parts ...int) (got []uint64) {
		for range own {
			got = append(got, src.Uint64())
		}
		for _, n := range parts {
			src.Part(func() {
				for range n {
					got = append(got, src.Uint64())
				}
			})
		}
		return got
	}
	draws(src, 1, 2, 2)
	for _, c := range []struct {
		own, first, second int
		want               []uint64
	}{
		{1, 2, 2, []uint64{2, 3, 4, 5, 6}},
		{1, 1, 2, []uint64{2, 3, 5, 6}},
		{2, 3, 3, []uint64{2, 0, 3, 4, 0, 5, 6, 0}},
	} {
		if diff := cmp.Diff(c.want, draws(Replay(src.Tree()), c.own, c.first, c.second)); diff != "" {
			t.Errorf("%d, %d and %d draws (-want +got):\n%s", c.own, c.first, c.second, diff)
		}
	}
}

// A value is a function of seed, name and number.
func TestNew_Deterministic(t *testing.T) {
	draws := func(seed uint64, name string, i int) [8]uint64 {
		var all [8]uint64
		src := New(seed, name, i)
		for k := range all {
			all[k] = src.Uint64()
		}
		return all
	}
	first, again := draws(1, "a", 1), draws(1, "a", 1)
	if first != again {
		t.Error("the same is not the same")
	}
	for _, other := range [][8]uint64{draws(2, "a", 1), draws(1, "b", 1), draws(1, "a", 2)} {
		if other == first {
			t.Error("another one is the same")
		}
	}
	if draws(1, "a", 0) != [8]uint64{} {
		t.Error("value 0 is not made of zeros")
	}
}

// A generator that waits for what never comes ends, and so does one of endless draws.
func TestNew_Endless(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, ErrEndless) {
			t.Errorf("got %v", err)
		}
	}()
	src := New(1, "a", 1)
	last := 0
	for n := 0; ; n++ {
		if src.Uint64() != 0 {
			last = n
		} else if n > allDraws+1 || last > freshDraws {
			t.Fatalf("%d draws, the last that is not zero is %d", n, last)
		}
	}
}

// numbers makes a list as a generator does: how many, and then each. Generators that know
// nothing of parts have none.
func numbers(src *Source, parts bool) (list []int) {
	r := rand.New(src)
	for range r.Intn(40) {
		add := func() { list = append(list, r.Intn(1000)) }
		if parts {
			src.Part(add)
		} else {
			add()
		}
	}
	return list
}

// A value shrinks to the smallest that is still found.
func TestShrink_FindsSmallest(t *testing.T) {
	for name, c := range map[string]struct {
		found func(list []int) bool
		want  []int
	}{
		"long":               {func(l []int) bool { return len(l) > 3 }, []int{0, 0, 0, 0}},
		"a large one":        {func(l []int) bool { return atLeast(l, 501) > 0 }, []int{501}},
		"two, one not small": {func(l []int) bool { return atLeast(l, 7) > 0 && len(l) > 1 }, []int{0, 7}},
	} {
		for seed := range uint64(20) {
			parts := seed%2 == 0
			found := func(tree *Tree) (Found[[]int], bool) {
				src := Replay(tree)
				list := numbers(src, parts)
				size := len(list)
				for _, v := range list {
					size += v
				}
				slices.Sort(list)
				return Found[[]int]{list, size, src.Tree()}, c.found(list)
			}
			for i := 1; ; i++ {
				src := New(seed, name, i)
				numbers(src, parts)
				first, ok := found(src.Tree())
				if !ok {
					continue
				}
				best, tried := Shrink(Shrinker{Tries: 3000}, first, found)
				if diff := cmp.Diff(c.want, best.Value); diff != "" {
					t.Errorf("%s, seed %d, after %d tries (-want +got):\n%s", name, seed, tried, diff)
				}
				break
			}
		}
	}
}

// atLeast is how many are at least so large.
func atLeast(list []int, least int) (n int) {
	for _, v := range list {
		if v >= least {
			n++
		}
	}
	return n
}

func TestShrink_BoundedEffort(t *testing.T) {
	tree := &Tree{Own: make([]uint64, 1000)}
	for i := range tree.Own {
		tree.Own[i] = 1<<63 + uint64(i)
	}
	calls := 0
	try := func(*Tree) (Found[int], bool) {
		calls++
		return Found[int]{0, -calls, tree}, true
	}
	if _, tried := Shrink(Shrinker{Tries: 2}, Found[int]{Tree: tree}, try); tried != 2 || calls != 2 {
		t.Errorf("%d tries, %d calls", tried, calls)
	}
	if _, tried := Shrink(Shrinker{Tries: 5, Time: 1}, Found[int]{Tree: tree}, try); tried != 0 {
		t.Errorf("%d tries in no time", tried)
	}
}

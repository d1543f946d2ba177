package draw

import (
	"errors"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReplayGivesItsDrawsAndThenZeros(t *testing.T) {
	src := Replay([]uint64{3, 0, 5})
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

func TestAValueIsAFunctionOfSeedNameAndNumber(t *testing.T) {
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
func TestPatienceAndSizeAreBounded(t *testing.T) {
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

// numbers makes a list as a generator does: how many, and then each.
func numbers(src *Source) (list []int) {
	r := rand.New(src)
	for range r.Intn(40) {
		list = append(list, r.Intn(1000))
	}
	return list
}

func TestAValueShrinksToTheSmallestThatIsStillFound(t *testing.T) {
	for name, c := range map[string]struct {
		found func(list []int) bool
		want  []int
	}{
		"long":               {func(l []int) bool { return len(l) > 3 }, []int{0, 0, 0, 0}},
		"a large one":        {func(l []int) bool { return atLeast(l, 501) > 0 }, []int{501}},
		"two, one not small": {func(l []int) bool { return atLeast(l, 7) > 0 && len(l) > 1 }, []int{7, 0}},
	} {
		for seed := range uint64(10) {
			found := func(stream []uint64) (Found[[]int], bool) {
				src := Replay(stream)
				list := numbers(src)
				size := len(list)
				for _, v := range list {
					size += v
				}
				return Found[[]int]{list, size, src.Stream()}, c.found(list)
			}
			for i := 1; ; i++ {
				src := New(seed, name, i)
				numbers(src)
				first, ok := found(src.Stream())
				if !ok {
					continue
				}
				best, tried := Shrink(Shrinker{Tries: 3000, Time: time.Minute}, first, found)
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

func TestTheEffortIsBounded(t *testing.T) {
	stream := make([]uint64, 1000)
	for i := range stream {
		stream[i] = 1<<63 + uint64(i)
	}
	calls := 0
	try := func(stream []uint64) (Found[int], bool) {
		calls++
		return Found[int]{0, 0, stream}, true
	}
	if _, tried := Shrink(Shrinker{Tries: 5, Time: time.Minute}, Found[int]{Stream: stream}, try); tried != 5 || calls != 5 {
		t.Errorf("%d tries, %d calls", tried, calls)
	}
	if _, tried := Shrink(Shrinker{Tries: 5}, Found[int]{Stream: stream}, try); tried != 0 {
		t.Errorf("%d tries in no time", tried)
	}
}

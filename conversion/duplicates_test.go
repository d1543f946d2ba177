package conversion_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A list that the user left alone keeps its hidden fields, whichever of its elements are equal in the
// spoke, when a hidden field elsewhere contradicts an edit.
func TestLossless_UntouchedListWithDuplicates(t *testing.T) {
	reg := release{}.farms(t, poolKeys)
	rapid.Check(t, func(rt *rapid.T) {
		var hub hubFarm
		hub.Spec.Pools = []hubPool{{Name: "p", Size: 5}}
		hub.Spec.Weights = map[string]int64{"p": 5}
		hub.Spec.Ponds = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) hubPool {
			return hubPool{
				Name:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				Size:  rapid.Int64Range(0, 1).Draw(t, "size"),
				Exact: rapid.Int64Range(0, 2).Draw(t, "exact"),
				Note:  rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "note"),
			}
		}), 0, 6).Draw(rt, "ponds")
		if i := rapid.IntRange(-1, len(hub.Spec.Ponds)).Draw(rt, "hidden"); i >= 0 {
			hub.Spec.Ponds = slices.Insert(hub.Spec.Ponds, i, hubPool{Name: "w", Hidden: true})
		}
		got := edited(t, reg, reg, textOf(t, hub.Spec), func(f *oldFarm) { f.Spec.Pools[0].Size = 2 })
		hub.Spec.Pools[0].Size, hub.Spec.Weights = 2, nil
		if diff := cmp.Diff(into[any](t, textOf(t, hub.Spec)), into[any](t, got)); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

package conversion_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/expect"
)

// decoded converts a spoke as a ConvertTo method does that ends with the decoder. It returns the JSON of
// the hub, or the error.
func decoded[S, H runtime.Object](t testing.TB, spoke S, hub H, meta, hubMeta *metav1.ObjectMeta,
	toHub func(context.Context, S, H) error, fromHub func(context.Context, H, S) error, opts ...lossless.Option) string {
	t.Helper()
	before := textOf(t, spoke)
	meta.DeepCopyInto(hubMeta)
	expect.NoError(t, toHub(t.Context(), spoke, hub))
	if err := lossless.RestoreFunc(t.Context(), spoke, hub, toHub, fromHub, opts...); err != nil {
		return err.Error()
	}
	if diff := cmp.Diff(before, textOf(t, spoke)); diff != "" {
		t.Fatalf("the spoke has changed (-before +after):\n%s", diff)
	}
	return textOf(t, hub)
}

// sameObject compares two objects, as JSON.
func sameObject(t testing.TB, want, got string) string {
	t.Helper()
	if !json.Valid([]byte(got)) {
		return got
	}
	return cmp.Diff(into[any](t, want), into[any](t, got))
}

// For random objects and edits, package lossless gives what the registry gives.
func TestDecoder_GivesWhatRegistryGives(t *testing.T) {
	reg, decoderKeys := menuRegistry(t), lossless.ListMapKeys(dishKeyed)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 8))
		spoke := into[oldMenu](t, convert(t, reg, textOf(t, randomMenu(r)), oldMenu1.GroupVersion()))
		editMenu(r, &spoke)
		want := convert(t, reg, textOf(t, spoke), menus)
		hub := hubMenu{TypeMeta: metav1.TypeMeta{APIVersion: menus.String(), Kind: "Menu"}}
		got := decoded(t, &spoke, &hub, &spoke.ObjectMeta, &hub.ObjectMeta, menuToHub, menuFromHub, decoderKeys)
		if diff := sameObject(t, want, got); diff != "" {
			t.Fatalf("seed %d: %s (-registry +decoder):\n%s", seed, textOf(t, spoke), diff)
		}
	}
}

// The same for farms, whose hidden fields contradict edits, and for annotations of earlier releases.
func TestDecoder_GivesWhatRegistryGives_Farms(t *testing.T) {
	releases := []release{{}, {mode: "deep"}, {sums: true}, {shows: true}}
	decoderKeys, kept := lossless.ListMapKeys(poolKeyed), 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 9))
		read := releases[r.IntN(len(releases))]
		spoke := into[oldFarm](t, convert(t, releases[r.IntN(len(releases))].farms(t, poolKeys), textOf(t, randomFarm(r)), oldFarms.GroupVersion()))
		if r.IntN(3) > 0 {
			editPools(r, &spoke.Spec.Pools)
			editPools(r, &spoke.Spec.Ponds)
		}
		text, err := read.farms(t, poolKeys).Convert(t.Context(), []byte(textOf(t, spoke)), menus)
		hub := hubFarm{TypeMeta: metav1.TypeMeta{APIVersion: menus.String(), Kind: "Farm"}}
		got := decoded(t, &spoke, &hub, &spoke.ObjectMeta, &hub.ObjectMeta, read.toHub, read.fromHub, decoderKeys)
		switch {
		case err != nil:
			if want := fmt.Sprintf("cannot convert %s from example.com/v1 to example.com/v2: %s", "Farm f", got[len("Farm f: "):]); want != err.Error() {
				t.Fatalf("seed %d: %s: got %s, want %v", seed, textOf(t, spoke), got, err)
			}
			continue
		case sameObject(t, string(text), got) != "":
			t.Fatalf("seed %d: %s (-registry +decoder):\n%s", seed, textOf(t, spoke), sameObject(t, string(text), got))
		}
		if spoke.Annotations[lossless.Annotation] != "" {
			kept++
		}
	}
	if kept < 1000 {
		t.Errorf("%d objects had an annotation", kept)
	}
}

func randomFarm(r *rand.Rand) *hubFarm {
	f := &hubFarm{TypeMeta: metav1.TypeMeta{APIVersion: menus.String(), Kind: "Farm"}}
	f.Name = "f"
	pools := func() (all []hubPool) {
		for _, i := range r.Perm(5)[:r.IntN(5)] {
			all = append(all, hubPool{
				Name: fmt.Sprint("p", i), Size: r.Int64N(3), Exact: r.Int64N(2), Mode: []string{"", "deep"}[r.IntN(2)],
				Note: []string{"", "x", "y"}[r.IntN(3)], Hidden: r.IntN(5) == 0,
			})
		}
		return all
	}
	f.Spec.Pools, f.Spec.Ponds = pools(), pools()
	for _, p := range pools() {
		if f.Spec.Weights == nil {
			f.Spec.Weights = map[string]int64{}
		}
		f.Spec.Weights[p.Name] = 1 + p.Size
	}
	f.Spec.Motto = []string{"", "m"}[r.IntN(2)]
	return f
}

func editPools(r *rand.Rand, pools *[]oldPool) {
	for range r.IntN(3) {
		switch n := len(*pools); {
		case n > 0 && r.IntN(3) == 0:
			*pools = slices.Delete(*pools, r.IntN(n), n)
		case n > 0 && r.IntN(2) == 0:
			(*pools)[r.IntN(n)].Size += 1 + r.Int64N(3)
		default:
			*pools = slices.Insert(*pools, r.IntN(n+1), oldPool{Name: fmt.Sprint("new", r.IntN(100)), Size: 1})
		}
	}
	if len(*pools) == 0 {
		*pools = nil
	}
}

package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/expect"
)

// hubFarm has pools of which the spoke shows some, and of these a size and a mode.
type hubFarm struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Pools   []hubPool          `json:"pools,omitempty"`
		Ponds   []hubPool          `json:"ponds,omitempty"` // a list without keys
		Sheds   map[string]hubPool `json:"sheds,omitempty"`
		Weights map[string]int64   `json:"weights,omitempty"` // by pool; not in the spoke
		Motto   string             `json:"motto,omitempty"`   // not in the spoke
		Extra   int64              `json:"extra,omitempty"`   // what the spoke shows beyond the weights
	} `json:"spec"`
}

type hubPool struct {
	Name   string `json:"name,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Exact  int64  `json:"exact,omitempty"` // not in the spoke, which shows it as the size
	Mode   string `json:"mode,omitempty"`
	Note   string `json:"note,omitempty"`   // not in the spoke
	Hidden bool   `json:"hidden,omitempty"` // then the spoke does not show the pool
}

type oldFarm struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Pools []oldPool          `json:"pools,omitempty"`
		Ponds []oldPool          `json:"ponds,omitempty"`
		Sheds map[string]oldPool `json:"sheds,omitempty"`
		Total int64              `json:"total,omitempty"`
	} `json:"spec"`
}

type oldPool struct {
	Name string `json:"name,omitempty"`
	Size int64  `json:"size,omitempty"`
	Mode string `json:"mode,omitempty"`
}

func (*hubFarm) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*oldFarm) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

var oldFarms = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Farm"}

// release is what a release of the operator does.
type release struct {
	mode  string // the default of the hub
	note  string // another one, which the spoke does not show
	motto string // and another
	sums  bool   // whether the spoke shows the sum of all weights
	shows bool   // whether the spoke shows hidden pools
}

func (r release) poolToHub(p oldPool) hubPool {
	h := hubPool{Name: p.Name, Size: p.Size, Mode: p.Mode, Note: r.note}
	if h.Mode == "" {
		h.Mode = r.mode
	}
	return h
}

func (r release) poolFromHub(p hubPool) (old oldPool, shown bool) {
	if p.Exact != 0 {
		p.Size = p.Exact
	}
	if p.Mode == r.mode {
		p.Mode = ""
	}
	return oldPool{p.Name, p.Size, p.Mode}, r.shows || !p.Hidden
}

// farms returns the registry of a release, of which v1 is lossless.
func (r release) farms(t testing.TB, opts ...lossless.Option) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(oldFarms, &oldFarm{})
	s.AddKnownTypeWithName(menus.WithKind("Farm"), &hubFarm{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, errors.Join(conversion.AddSpoke(reg, r.toHub, r.fromHub), conversion.Lossless(reg, oldFarms, opts...)))
	return reg
}

func (r release) toHub(_ context.Context, in *oldFarm, out *hubFarm) error {
	for _, p := range in.Spec.Pools {
		out.Spec.Pools = append(out.Spec.Pools, r.poolToHub(p))
	}
	for _, p := range in.Spec.Ponds {
		out.Spec.Ponds = append(out.Spec.Ponds, r.poolToHub(p))
	}
	for name, p := range in.Spec.Sheds {
		if out.Spec.Sheds == nil {
			out.Spec.Sheds = map[string]hubPool{}
		}
		out.Spec.Sheds[name] = r.poolToHub(p)
	}
	out.Spec.Motto = r.motto
	if r.sums {
		out.Spec.Extra = in.Spec.Total
	}
	return nil
}

func (r release) fromHub(_ context.Context, in *hubFarm, out *oldFarm) error {
	for _, p := range in.Spec.Pools {
		if old, ok := r.poolFromHub(p); ok {
			if w := in.Spec.Weights[p.Name]; w != 0 {
				old.Size = w
			}
			out.Spec.Pools = append(out.Spec.Pools, old)
		}
	}
	for _, p := range in.Spec.Ponds {
		if old, ok := r.poolFromHub(p); ok {
			out.Spec.Ponds = append(out.Spec.Ponds, old)
		}
	}
	for name, p := range in.Spec.Sheds {
		if old, ok := r.poolFromHub(p); ok {
			if out.Spec.Sheds == nil {
				out.Spec.Sheds = map[string]oldPool{}
			}
			out.Spec.Sheds[name] = old
		}
	}
	if r.sums {
		out.Spec.Total = in.Spec.Extra
		for _, w := range in.Spec.Weights {
			out.Spec.Total += w
		}
	}
	return nil
}

var (
	poolKeyed   = keyed(menus.WithKind("Farm"), "spec.pools", "name")
	poolKeys    = lossless.ListMapKeys(poolKeyed)
	poolAndMode = lossless.ListMapKeys(keyed(menus.WithKind("Farm"), "spec.pools", "name", "mode"))
)

func farmOf(version, spec string) string {
	return `{"apiVersion":"example.com/` + version + `","kind":"Farm","metadata":{"name":"f"},"spec":` + spec + `}`
}

// edited returns a hub after a user has edited its spoke.
func edited(t testing.TB, written, read *conversion.Registry, hub string, edit func(*oldFarm)) string {
	t.Helper()
	spoke := into[oldFarm](t, convert(t, written, farmOf("v2", hub), oldFarms.GroupVersion()))
	if edit != nil {
		edit(&spoke)
	}
	text, err := read.Convert(t.Context(), []byte(textOf(t, spoke)), menus)
	if err != nil {
		return err.Error()
	}
	var got struct{ Spec json.RawMessage }
	expect.NoError(t, json.Unmarshal(text, &got))
	return string(got.Spec)
}

// Fields that the spoke cannot show are kept. A user did not remove fields that the user could not
// see.
func TestLossless_KeepsHiddenFields(t *testing.T) {
	for name, c := range map[string]struct {
		hub  string
		edit func(*oldFarm)
		want string
	}{
		"all that shows of a list": {
			`{"pools":[{"name":"a","size":1,"note":"x"},{"name":"w","hidden":true}]}`, func(f *oldFarm) { f.Spec.Pools = nil },
			`{"pools":[{"name":"w","hidden":true}]}`,
		},
		"all that shows of a list without keys": {
			`{"ponds":[{"name":"a","size":1},{"name":"w","hidden":true}]}`, func(f *oldFarm) { f.Spec.Ponds = nil },
			`{"ponds":[{"name":"w","hidden":true}]}`,
		},
		"all that shows of a map": {
			`{"sheds":{"a":{"size":1,"note":"x"},"w":{"hidden":true}}}`, func(f *oldFarm) { f.Spec.Sheds = nil },
			`{"sheds":{"w":{"hidden":true}}}`,
		},
		"what is added to a list without keys that shows nothing": {
			`{"ponds":[{"name":"w","hidden":true}]}`, func(f *oldFarm) { f.Spec.Ponds = []oldPool{{Name: "new"}} },
			`{"ponds":[{"name":"new"},{"name":"w","hidden":true}]}`,
		},
		"an edited element without a key": {
			`{"ponds":[{"name":"a","size":1,"note":"x"},{"name":"b","size":1,"note":"y"}]}`, func(f *oldFarm) { f.Spec.Ponds[0].Size = 2 },
			`{"ponds":[{"name":"a","size":2,"note":"x"},{"name":"b","size":1,"note":"y"}]}`,
		},
		"an element of which one hidden field is against the edit": {
			`{"pools":[{"name":"a","exact":1,"note":"x"},{"name":"b","exact":1,"note":"y"}]}`, func(f *oldFarm) { f.Spec.Pools[0].Size = 2 },
			`{"pools":[{"name":"a","size":2,"note":"x"},{"name":"b","exact":1,"note":"y"}]}`,
		},
		"a field elsewhere that is against the edit": {
			`{"pools":[{"name":"a","size":5},{"name":"b","size":6}],"weights":{"a":5,"b":6,"c":7},"motto":"<&>"}`, func(f *oldFarm) { f.Spec.Pools[0].Size = 2 },
			`{"pools":[{"name":"a","size":2},{"name":"b","size":6}],"weights":{"b":6,"c":7},"motto":"<&>"}`,
		},
	} {
		reg := release{}.farms(t, poolKeys)
		got := into[any](t, edited(t, reg, reg, c.hub, c.edit))
		if diff := cmp.Diff(into[any](t, c.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Ponds have no declared keys, and a user edits, moves, adds and removes some.
func TestLossless_NeverMixesElements(t *testing.T) {
	reg := release{}.farms(t)
	rapid.Check(t, func(r *rapid.T) {
		draw := func(most int, label string) int { return rapid.IntRange(0, most).Draw(r, label) }
		var hub hubFarm
		for i := range 1 + draw(5, "ponds") {
			hub.Spec.Ponds = append(hub.Spec.Ponds, hubPool{Name: fmt.Sprint("pond", i), Size: int64(1 + draw(2, "size")), Mode: "deep", Note: fmt.Sprint("note", i)})
		}
		var gone []string
		text := edited(t, reg, reg, textOf(t, hub.Spec), func(f *oldFarm) {
			for range 1 + draw(2, "edits") {
				ponds, i := f.Spec.Ponds, draw(len(f.Spec.Ponds), "index")
				switch edit := draw(3, "edit"); {
				case i == len(ponds):
					f.Spec.Ponds = append(ponds, oldPool{Name: fmt.Sprint("new", draw(9, "new")), Size: int64(draw(3, "size of the new"))})
				case edit == 0:
					gone = append(gone, ponds[i].Name)
					f.Spec.Ponds = slices.Delete(ponds, i, i+1)
				case edit == 1:
					ponds[0], ponds[i] = ponds[i], ponds[0]
				default:
					ponds[i].Size += 7
				}
			}
		})
		var spec struct{ Ponds []hubPool }
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			r.Fatalf("%s: %v", text, err)
		}
		for _, pond := range spec.Ponds {
			want := strings.Replace(pond.Name, "pond", "note", 1)
			if strings.HasPrefix(pond.Name, "new") {
				want = ""
			}
			if pond.Note != want {
				r.Fatalf("%s has the note %q, in %s; gone are %v", pond.Name, pond.Note, text, gone)
			}
		}
	})
}

// An annotation that would be too large has hashes of elements, and not the elements.
func TestLossless_LongListsWithoutKeys(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		edited bool // whether an edited element is found again
	}{
		"elements": {strings.Repeat("m", 300_000), true},
		"hashes":   {random(300_000), false},
	} {
		var hub hubFarm
		for i := range 500 {
			hub.Spec.Ponds = append(hub.Spec.Ponds, hubPool{Name: fmt.Sprint("pond", i), Mode: c.mode[600*i : 600*(i+1)], Note: "x"})
		}
		reg := release{}.farms(t)
		if diff := cmp.Diff(into[any](t, textOf(t, hub.Spec)), into[any](t, edited(t, reg, reg, textOf(t, hub.Spec), nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got := into[hubFarm](t, `{"spec":`+edited(t, reg, reg, textOf(t, hub.Spec), func(f *oldFarm) { f.Spec.Ponds[7].Size = 1 })+`}`)
		for i, pond := range got.Spec.Ponds {
			if (pond.Note == "x") != (i != 7 || c.edited) {
				t.Errorf("%s: pond %d has the note %q", name, i, pond.Note)
			}
		}
	}
}

// An annotation that an earlier release has written still says what only the hub knows.
func TestLossless_ReadsAnnotationsOfEarlierReleases(t *testing.T) {
	const hub = `{"pools":[{"name":"a","size":1,"note":"x"},{"name":"b","size":2,"note":"y"},{"name":"w","hidden":true}],` +
		`"ponds":[{"name":"a","size":1,"note":"x"},{"name":"b","size":2,"note":"y"}],"sheds":{"a":{"size":1,"note":"x"}},"motto":"m"}`
	for name, c := range map[string]struct {
		written, read *conversion.Registry
	}{
		"a default more":                     {release{}.farms(t, poolKeys), release{mode: "deep"}.farms(t, poolKeys)},
		"a default less":                     {release{mode: "deep"}.farms(t, poolKeys), release{}.farms(t, poolKeys)},
		"another default":                    {release{mode: "deep"}.farms(t, poolKeys), release{mode: "flat"}.farms(t, poolKeys)},
		"other keys":                         {release{}.farms(t, poolKeys), release{mode: "deep"}.farms(t, poolAndMode)},
		"keys no longer":                     {release{}.farms(t, poolKeys), release{mode: "deep"}.farms(t)},
		"keys more":                          {release{}.farms(t), release{mode: "deep"}.farms(t, poolKeys)},
		"a default of what only the hub has": {release{}.farms(t, poolKeys), release{note: "none", motto: "none"}.farms(t, poolKeys)},
		"and without keys":                   {release{}.farms(t), release{note: "none", motto: "none"}.farms(t)},
		"a spoke that shows more":            {release{}.farms(t, poolKeys), release{shows: true}.farms(t, poolKeys)},
	} {
		got := edited(t, c.written, c.read, hub, nil)
		for _, want := range []string{`"motto":"m"`, `"name":"w"`, `"hidden":true`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s is missing in %s", name, want, got)
			}
		}
		if strings.Count(got, `"note":"x"`) != 3 || strings.Count(got, `"note":"y"`) != 2 {
			t.Errorf("%s: a note is missing in %s", name, got)
		}
	}
}

// A default of a later release is not an edit.
func TestLossless_DefaultIsNoEdit(t *testing.T) {
	const hub = `{"pools":[{"name":"a","size":1,"note":"x"}],"motto":"m"}`
	got := edited(t, release{}.farms(t, poolKeys), release{note: "none", motto: "none"}.farms(t, poolKeys), hub, func(f *oldFarm) {
		f.Spec.Pools[0].Size = 2
	})
	want := `{"pools":[{"name":"a","size":2,"note":"x"}],"motto":"m"}`
	if diff := cmp.Diff(into[any](t, want), into[any](t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A note finds the elements of lists that have other keys by now, also beside an edit.
func TestLossless_FindsElementsUnderOtherKeys(t *testing.T) {
	const hub = `{"pools":[{"name":"a","size":1,"note":"x"},{"name":"b","mode":"m","note":"y"}]}`
	for _, c := range [][2]lossless.Option{{poolKeys, poolAndMode}, {poolAndMode, poolKeys}} {
		written, read := release{}.farms(t, c[0]), release{}.farms(t, c[1])
		got := edited(t, written, read, hub, func(f *oldFarm) { f.Spec.Sheds = map[string]oldPool{"s": {}} })
		want := `{"pools":[{"name":"a","size":1,"note":"x"},{"name":"b","mode":"m","note":"y"}],"sheds":{"s":{}}}`
		if diff := cmp.Diff(into[any](t, want), into[any](t, got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Changes that show are parted from those that do not. Of changes that show only together, others
// do not go with them.
func TestLossless_PartsShownFromHidden(t *testing.T) {
	const n = 300
	var pools, weights []string
	for i := range n {
		pools = append(pools, fmt.Sprintf(`{"name":"p%d","note":"n"}`, i))
		weights = append(weights, fmt.Sprintf(`"w%d":1`, i))
	}
	reg := release{sums: true}.farms(t, poolKeys)
	hub := `{"pools":[` + strings.Join(pools, ",") + `],"weights":{` + strings.Join(weights, ",") + `}}`
	got := edited(t, reg, reg, hub, func(f *oldFarm) { f.Spec.Total++ })
	if notes := strings.Count(got, `"note":"n"`); notes != n {
		t.Errorf("%d of %d notes are left in %.300s", notes, n, got)
	}
}

// The fields of a spoke count, whatever an annotation says of them.
func TestLossless_RefusesWhatContradictsTheSpoke(t *testing.T) {
	reg := release{}.farms(t, poolKeys)
	spoke := convert(t, reg, farmOf("v2", `{"pools":[{"name":"a","size":1,"note":"x"}]}`), oldFarms.GroupVersion())
	forged := strings.Replace(spoke, `\"note\"],\"value\":\"x\"`, `\"exact\"],\"value\":7`, 1)
	if forged == spoke {
		t.Fatal(spoke)
	}
	got, err := reg.Convert(t.Context(), []byte(forged), menus)
	if err == nil || !strings.Contains(err.Error(), "spec.pools") || !strings.Contains(err.Error(), "would change the object") {
		t.Errorf("got %s, %v", got, err)
	}
}

// large returns a hub with n pools, and an edit of all of them.
func large(n int) (hub string, edit func(*oldFarm)) {
	var pools []string
	for i := range n {
		pools = append(pools, fmt.Sprintf(`{"name":"pool-%05d","exact":%d,"mode":"deep","note":"the note of pool %d, which the spoke does not show, and of which nothing is lost","size":1}`, i, i+1, i))
	}
	return `{"pools":[` + strings.Join(pools, ",") + `]}`, func(f *oldFarm) {
		for i := range f.Spec.Pools {
			f.Spec.Pools[i].Size += 100_000
		}
	}
}

// No edit is refused for its size, and each element keeps what is not against the edit.
func TestLossless_MergesLargeEdits(t *testing.T) {
	const n = 2000
	reg := release{}.farms(t, poolKeys)
	hub, edit := large(n)
	got := edited(t, reg, reg, hub, edit)
	if notes, exact := strings.Count(got, "the note of"), strings.Count(got, `"exact"`); notes != n || exact != 0 {
		t.Errorf("there are %d notes and %d exact sizes in %.300s", notes, exact, got)
	}
}

// The time for an edit of all elements by that for an eighth of them is about 8.
func BenchmarkLossless_edited(b *testing.B) {
	for _, n := range []int{100, 400, 800, 4_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			reg := release{}.farms(b, poolKeys)
			hub, edit := large(n)
			spoke := into[oldFarm](b, convert(b, reg, farmOf("v2", hub), oldFarms.GroupVersion()))
			edit(&spoke)
			text := []byte(textOf(b, spoke))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := reg.Convert(b.Context(), text, menus); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// hubRoute marks backends, and oldRoute names the first one that is marked: of many that an annotation marks,
// each trial finds one that shows.
type hubRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Backends []hubBackend `json:"backends,omitempty"`
	} `json:"spec,omitzero"`
}

type hubBackend struct {
	Name    string `json:"name"`
	Primary bool   `json:"primary,omitempty"`
}

type oldRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Backends []string `json:"backends,omitempty"`
		Primary  string   `json:"primary,omitempty"`
	} `json:"spec,omitzero"`
}

func (*hubRoute) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*oldRoute) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

// The trials of what an annotation says end with their budget, or when the client has gone.
func TestLossless_TrialsEnd(t *testing.T) {
	old, hub := menus.WithKind("Route"), menus.WithKind("Route")
	old.Version = "v1"
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(old, &oldRoute{})
	s.AddKnownTypeWithName(hub, &hubRoute{})
	calls, gone := 0, func() {}
	r := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(r, func(_ context.Context, in *oldRoute, out *hubRoute) error {
		for _, name := range in.Spec.Backends {
			out.Spec.Backends = append(out.Spec.Backends, hubBackend{name, name == in.Spec.Primary})
		}
		return nil
	}, func(_ context.Context, in *hubRoute, out *oldRoute) error {
		if calls++; calls == 20 {
			gone()
		}
		for _, b := range in.Spec.Backends {
			out.Spec.Backends = append(out.Spec.Backends, b.Name)
			if b.Primary && out.Spec.Primary == "" {
				out.Spec.Primary = b.Name
			}
		}
		return nil
	}))
	expect.NoError(t, conversion.Lossless(r, old, lossless.ListMapKeys(keyed(hub, "spec.backends", "name"))))

	var names, changes []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf(`"b%d"`, i))
		changes = append(changes, fmt.Sprintf(`{"path":["spec","backends",{"key":{"name":"b%d"}},"primary"],"value":true}`, i))
	}
	note, err := json.Marshal(`{"spoke":"v1","hub":"v2","of":"x","lost":[` + strings.Join(changes, ",") + `]}`)
	expect.NoError(t, err)
	object := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Route","metadata":{"name":"x","annotations":{%q:%s}},"spec":{"backends":[%s]}}`,
		old.GroupVersion(), lossless.Annotation, note, strings.Join(names, ","))
	if _, err := r.Convert(t.Context(), object, hub.GroupVersion()); err != nil || calls > 500 {
		t.Errorf("%d conversions: %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls, gone = 0, cancel
	if _, err := r.Convert(ctx, object, hub.GroupVersion()); !errors.Is(err, context.Canceled) || calls > 22 {
		t.Errorf("%d conversions, and the client went away during the 20th: %v", calls, err)
	}
}

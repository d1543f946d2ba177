package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/expect"
)

// A menu of the hub has prices in a currency, dishes with notes, and opening hours.
// That of v1 has one list of dish names, prices, and tags as one string.

type hubMenu struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              hubSpec `json:"spec,omitzero"`
}

type hubSpec struct {
	Currency string         `json:"currency,omitempty"` // not in v1
	Size     string         `json:"size,omitempty"`     // Small, Large or XL; v1 knows no XL
	Dishes   []hubDish      `json:"dishes,omitempty"`   // told by name
	Tags     []hubTag       `json:"tags,omitempty"`     // told by content
	Hours    *hubHours      `json:"hours,omitempty"`    // v1 has opens alone
	Extra    map[string]any `json:"extra,omitempty"`    // not in v1
}

type hubDish struct {
	Name  string `json:"name"`
	Price int64  `json:"price"`
	Note  string `json:"note,omitempty"`  // not in v1
	Vegan *bool  `json:"vegan,omitempty"` // not in v1
}

type hubTag struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"` // not in v1
}

type hubHours struct {
	Opens  int64 `json:"opens"`
	Closes int64 `json:"closes,omitempty"` // not in v1
}

type oldMenu struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              oldSpec `json:"spec,omitzero"`
}

type oldSpec struct {
	Size   string    `json:"size,omitempty"`
	Dishes []oldDish `json:"dishes,omitempty"`
	Tags   []string  `json:"tags,omitempty"`
	Opens  *int64    `json:"opens,omitempty"`
}

type oldDish struct {
	Name  string `json:"name"`
	Price int64  `json:"price"`
}

func (*hubMenu) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*oldMenu) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

var (
	menus    = schema.GroupVersion{Group: "example.com", Version: "v2"}
	oldMenu1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Menu"}
)

func menuToHub(_ context.Context, in *oldMenu, out *hubMenu) error {
	out.Spec.Size = in.Spec.Size
	for _, d := range in.Spec.Dishes {
		out.Spec.Dishes = append(out.Spec.Dishes, hubDish{Name: d.Name, Price: d.Price})
	}
	for _, text := range in.Spec.Tags {
		out.Spec.Tags = append(out.Spec.Tags, hubTag{Text: text})
	}
	if in.Spec.Opens != nil {
		out.Spec.Hours = &hubHours{Opens: *in.Spec.Opens}
	}
	return nil
}

func menuFromHub(_ context.Context, in *hubMenu, out *oldMenu) error {
	out.Spec.Size = strings.Replace(in.Spec.Size, "XL", "Large", 1)
	for _, d := range in.Spec.Dishes {
		out.Spec.Dishes = append(out.Spec.Dishes, oldDish{Name: d.Name, Price: d.Price})
	}
	for _, tag := range in.Spec.Tags {
		out.Spec.Tags = append(out.Spec.Tags, tag.Text)
	}
	if in.Spec.Hours != nil {
		out.Spec.Opens = &in.Spec.Hours.Opens
	}
	delete(out.Annotations, "v2-only")
	return nil
}

func menuScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(oldMenu1, &oldMenu{})
	s.AddKnownTypeWithName(menus.WithKind("Menu"), &hubMenu{})
	return s
}

// menuRegistry has the kind Menu with the hub v2 and the spoke v1, which is lossless.
func menuRegistry(t testing.TB, opts ...lossless.Option) *conversion.Registry {
	t.Helper()
	reg := conversion.NewRegistry(menuScheme())
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, menuToHub, menuFromHub),
		conversion.Lossless(reg, oldMenu1, append([]lossless.Option{dishKeys}, opts...)...),
	))
	return reg
}

var (
	dishKeyed = keyed(menus.WithKind("Menu"), "spec.dishes", "name")
	dishKeys  = lossless.ListMapKeys(dishKeyed)
)

// keyed returns a definition of which one version has one list with keys, such as spec.dishes.
func keyed(kind schema.GroupVersionKind, path string, keys ...string) []byte {
	object, list, _ := strings.Cut(path, ".")
	plural := strings.ToLower(kind.Kind) + "s"
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s"},"spec":{
		"group":%q,"names":{"kind":%q,"plural":%q},"scope":"Namespaced","versions":[{"name":%q,"schema":{"openAPIV3Schema":{
		"properties":{%q:{"properties":{%q:{"x-kubernetes-list-map-keys":["%s"]}}}}}}}]}}`,
		plural, kind.Group, kind.Group, kind.Kind, plural, kind.Version, object, list, strings.Join(keys, `","`))
}

func menuOf(version, metadata, spec string) string {
	return `{"apiVersion":"example.com/` + version + `","kind":"Menu","metadata":` + metadata + `,"spec":` + spec + `}`
}

// into decodes an object.
func into[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func textOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	expect.NoError(t, err)
	return string(b)
}

const richMenu = `{"currency":"CHF","size":"XL","dishes":[{"name":"soup","price":7,"note":"hot"},{"name":"bread","price":2},{"name":"cake","price":5,"vegan":true}],"tags":[{"text":"new","color":"red"},{"text":"old","color":"grey"}],"hours":{"opens":11,"closes":22},"extra":{"n":9007199254740993,"x":[1.0,null,{}]}}`

// The fields that a spoke cannot express come back.
func TestLossless_RoundTrip(t *testing.T) {
	reg := menuRegistry(t)
	hub := menuOf("v2", `{"name":"m","annotations":{"v2-only":"x","other":"y"}}`, richMenu)
	spoke := convert(t, reg, hub, schema.GroupVersion{Group: "example.com", Version: "v1"})
	want := menuOf("v1", `{"name":"m"}`, `{"size":"Large","dishes":[{"name":"soup","price":7},{"name":"bread","price":2},{"name":"cake","price":5}],"tags":["new","old"],"opens":11}`)
	got := into[oldMenu](t, spoke)
	noted := got.Annotations[lossless.Annotation]
	got.Annotations = nil
	if diff := cmp.Diff(into[oldMenu](t, want), got); diff != "" {
		t.Errorf("the spoke (-want +got):\n%s", diff)
	}
	for _, kept := range []string{`"soup"`, `"hot"`, `"CHF"`, `"v2-only"`, `9007199254740993`, `1.0`} {
		if !strings.Contains(noted, kept) {
			t.Errorf("the note has no %s: %s", kept, noted)
		}
	}
	for _, other := range []string{`bread`, `11`, `"old":`, "other"} {
		if strings.Contains(noted, other) {
			t.Errorf("the note has %s, which v1 can express: %s", other, noted)
		}
	}
	back := convert(t, reg, spoke, menus)
	if diff := cmp.Diff(into[any](t, hub), into[any](t, back)); diff != "" {
		t.Errorf("the hub (-want +got):\n%s", diff)
	}
	if strings.Contains(back, lossless.Annotation) {
		t.Errorf("the annotation can be seen in the hub: %s", back)
	}
}

// A type may omit what is empty, or write what is not there. Neither is hidden. A difference that
// the type can tell, or does not know, is.
func TestLossless_EmptyObjectsAndLists(t *testing.T) {
	reg := menuRegistry(t)
	for spec, want := range map[string]bool{
		`{}`:                                     false, // omitzero
		`{"extra":{}}`:                           true,  // the type writes spec: {}
		`{"size":"Large","extra":{}}`:            false, // omitempty
		`{"size":"Large","dishes":[],"tags":[]}`: false,
		`{"dishes":[{"name":"a","price":1}],"tags":[{"text":"x"}],"hours":{"opens":1}}`: false, // nothing is lost
		`{"extra":{"a":{}}}`:             true,
		`{"hours":{}}`:                   true, // a pointer
		`{"size":""}`:                    true, // a zero value may have a default
		`{"extra":null}`:                 true,
		`{"unknown":{}}`:                 true,
		`{"dishes":[],"currency":"CHF"}`: true,
		`{"dishes":[{"name":"a"}]}`:      true,
		`{"tags":[{"text":"a","x":[]}]}`: true,
		`{"dishes":[],"dishes":[]}`:      true,
	} {
		hub := menuOf("v2", `{"name":"m"}`, spec)
		spoke := convert(t, reg, hub, oldMenu1.GroupVersion())
		if got := strings.Contains(spoke, "annotations"); got != want {
			t.Errorf("%s: there is an annotation: %t, in %s", spec, got, spoke)
		}
		if !want {
			hub = textOf(t, into[hubMenu](t, hub))
		}
		if diff := cmp.Diff(into[any](t, hub), into[any](t, convert(t, reg, spoke, menus))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
	// The type of farms writes a spec that is not there.
	farm := `{"apiVersion":"example.com/v2","kind":"Farm","metadata":{"name":"f"}}`
	if spoke := convert(t, release{}.farms(t), farm, oldFarms.GroupVersion()); strings.Contains(spoke, "annotations") {
		t.Errorf("a farm became %s", spoke)
	}
}

// TestLossless_EditOfSpokeWins writes down what popular helpers get wrong.
func TestLossless_EditOfSpokeWins(t *testing.T) {
	reg := menuRegistry(t)
	hub := menuOf("v2", `{"name":"m"}`, richMenu)
	for name, c := range map[string]struct {
		edit func(*oldMenu)
		want func(*hubMenu)
	}{
		"a changed scalar is not overwritten by a stale one": {
			func(m *oldMenu) { m.Spec.Size = "Small" },
			func(m *hubMenu) { m.Spec.Size = "Small" },
		},
		"a changed field of a list element stays, and the element keeps what it had besides": {
			func(m *oldMenu) { m.Spec.Dishes[0].Price = 8 },
			func(m *hubMenu) { m.Spec.Dishes[0].Price = 8 },
		},
		"a removed list element stays removed": {
			func(m *oldMenu) { m.Spec.Dishes = m.Spec.Dishes[1:] },
			func(m *hubMenu) { m.Spec.Dishes = m.Spec.Dishes[1:] },
		},
		"reordered elements keep what is theirs": {
			func(m *oldMenu) { slices.Reverse(m.Spec.Dishes); slices.Reverse(m.Spec.Tags) },
			func(m *hubMenu) { slices.Reverse(m.Spec.Dishes); slices.Reverse(m.Spec.Tags) },
		},
		"an element that is put in front takes nothing away from the others": {
			func(m *oldMenu) {
				m.Spec.Dishes = slices.Insert(m.Spec.Dishes, 0, oldDish{"tea", 3})
				m.Spec.Tags = slices.Insert(m.Spec.Tags, 0, "hot")
			},
			func(m *hubMenu) {
				m.Spec.Dishes = slices.Insert(m.Spec.Dishes, 0, hubDish{Name: "tea", Price: 3})
				m.Spec.Tags = slices.Insert(m.Spec.Tags, 0, hubTag{Text: "hot"})
			},
		},
		"an element that is known by its content is another one when that changes": {
			func(m *oldMenu) { m.Spec.Tags[0] = "newest" },
			func(m *hubMenu) { m.Spec.Tags[0] = hubTag{Text: "newest"} },
		},
		"a removed object is not brought back by what it had": {
			func(m *oldMenu) { m.Spec.Opens = nil },
			func(m *hubMenu) { m.Spec.Hours = nil },
		},
		"a changed object keeps what it had besides": {
			func(m *oldMenu) { m.Spec.Opens = new(int64(9)) },
			func(m *hubMenu) { m.Spec.Hours.Opens = 9 },
		},
		"an emptied list stays empty": {
			func(m *oldMenu) { m.Spec.Dishes, m.Spec.Tags = nil, nil },
			func(m *hubMenu) { m.Spec.Dishes, m.Spec.Tags = nil, nil },
		},
		"labels and annotations of the user are untouched": {
			func(m *oldMenu) { m.Labels = map[string]string{"a": "b"}; m.Annotations["c"] = "d" },
			func(m *hubMenu) { m.Labels = map[string]string{"a": "b"}; m.Annotations = map[string]string{"c": "d"} },
		},
	} {
		spoke := into[oldMenu](t, convert(t, reg, hub, oldMenu1.GroupVersion()))
		c.edit(&spoke)
		want := into[hubMenu](t, hub)
		c.want(&want)
		got := into[hubMenu](t, convert(t, reg, textOf(t, spoke), menus))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLossless_Laws: of random hub objects and random edits.
func TestLossless_Laws(t *testing.T) {
	reg := menuRegistry(t)
	v1 := oldMenu1.GroupVersion()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		hub := textOf(t, randomMenu(r))
		spoke := convert(t, reg, hub, v1)
		if diff := cmp.Diff(into[any](t, hub), into[any](t, convert(t, reg, spoke, menus))); diff != "" {
			t.Fatalf("seed %d: hub → spoke → hub (-want +got):\n%s", seed, diff)
		}
		edited := into[oldMenu](t, spoke)
		editMenu(r, &edited)
		up := convert(t, reg, textOf(t, edited), menus)
		down := into[oldMenu](t, convert(t, reg, up, v1))
		for _, m := range []*oldMenu{&edited, &down} {
			delete(m.Annotations, lossless.Annotation)
			if len(m.Annotations) == 0 {
				m.Annotations = nil
			}
		}
		if diff := cmp.Diff(edited, down); diff != "" {
			t.Fatalf("seed %d: the edit of %s got lost in %s (-edited +got):\n%s", seed, hub, up, diff)
		}
		// Elements that the user has not touched have kept their fields.
		before, after := into[hubMenu](t, hub).Spec, into[hubMenu](t, up).Spec
		if before.Currency != after.Currency || !cmp.Equal(before.Extra, after.Extra) {
			t.Fatalf("seed %d: %s became %s", seed, hub, up)
		}
		for _, dish := range after.Dishes {
			i := slices.IndexFunc(before.Dishes, func(d hubDish) bool { return d.Name == dish.Name })
			if i < 0 {
				if dish.Note != "" || dish.Vegan != nil {
					t.Fatalf("seed %d: the new dish %s has what was another's: %s", seed, dish.Name, up)
				}
			} else if was := before.Dishes[i]; was.Note != dish.Note || !cmp.Equal(was.Vegan, dish.Vegan) {
				t.Fatalf("seed %d: %s: %+v became %+v", seed, hub, was, dish)
			}
		}
	}
}

func randomMenu(r *rand.Rand) *hubMenu {
	m := &hubMenu{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "Menu"}}
	m.Name = "m"
	if r.IntN(4) == 0 {
		m.Annotations = map[string]string{"v2-only": "x"}
	}
	maybe := func(f func()) {
		if r.IntN(2) == 0 {
			f()
		}
	}
	maybe(func() { m.Spec.Currency = "CHF" })
	maybe(func() { m.Spec.Size = []string{"Small", "Large", "XL"}[r.IntN(3)] })
	for _, name := range r.Perm(6)[:r.IntN(6)] {
		d := hubDish{Name: fmt.Sprint(name), Price: r.Int64N(3)}
		maybe(func() { d.Note = fmt.Sprint("note ", name) })
		maybe(func() { d.Vegan = new(r.IntN(2) == 0) })
		m.Spec.Dishes = append(m.Spec.Dishes, d)
	}
	for range r.IntN(5) {
		m.Spec.Tags = append(m.Spec.Tags, hubTag{fmt.Sprint(r.IntN(3)), []string{"", "red", "grey"}[r.IntN(3)]})
	}
	maybe(func() { m.Spec.Hours = &hubHours{r.Int64N(12), r.Int64N(2)} })
	maybe(func() { m.Spec.Extra = map[string]any{"a": r.IntN(2), "b": nil, "c": []any{}} })
	return m
}

func editMenu(r *rand.Rand, m *oldMenu) {
	for range r.IntN(4) {
		switch r.IntN(8) {
		case 0:
			m.Spec.Size = []string{"", "Small", "Large"}[r.IntN(3)]
		case 1:
			m.Spec.Opens = new(r.Int64N(5))
		case 2:
			m.Spec.Opens = nil
		case 3:
			r.Shuffle(len(m.Spec.Dishes), func(i, j int) { m.Spec.Dishes[i], m.Spec.Dishes[j] = m.Spec.Dishes[j], m.Spec.Dishes[i] })
		case 4:
			r.Shuffle(len(m.Spec.Tags), func(i, j int) { m.Spec.Tags[i], m.Spec.Tags[j] = m.Spec.Tags[j], m.Spec.Tags[i] })
		case 5:
			if n := len(m.Spec.Dishes); n > 0 {
				m.Spec.Dishes = slices.Delete(m.Spec.Dishes, r.IntN(n), n)
			}
		case 6:
			name := fmt.Sprint("new ", r.IntN(100))
			if !slices.ContainsFunc(m.Spec.Dishes, func(d oldDish) bool { return d.Name == name }) {
				m.Spec.Dishes = slices.Insert(m.Spec.Dishes, r.IntN(len(m.Spec.Dishes)+1), oldDish{name, 1})
			}
			m.Spec.Tags = slices.Insert(m.Spec.Tags, r.IntN(len(m.Spec.Tags)+1), fmt.Sprint(r.IntN(3)))
		case 7:
			for i := range m.Spec.Dishes {
				m.Spec.Dishes[i].Price += r.Int64N(2)
			}
			if len(m.Spec.Tags) > 0 {
				m.Spec.Tags = m.Spec.Tags[1:]
			}
		}
	}
	if len(m.Spec.Dishes) == 0 {
		m.Spec.Dishes = nil
	}
	if len(m.Spec.Tags) == 0 {
		m.Spec.Tags = nil
	}
}

// noted returns a v1 menu with that annotation.
func noted(annotation string) string {
	return menuOf("v1", `{"name":"m","annotations":{"`+lossless.Annotation+`":`+string(quote(annotation))+`}}`, `{"size":"Large"}`)
}

func quote(s string) []byte { b, _ := json.Marshal(s); return b }

func TestLossless_NoteIsNotTrusted(t *testing.T) {
	lost := func(changes string) string { return `{"spoke":"v1","hub":"v2","lost":[` + changes + `]}` }
	for name, c := range map[string]struct{ annotation, message string }{
		"no JSON":                      {"{", "unexpected end of JSON input"},
		"unknown fields":               {`{"x":1}`, `unknown field "x"`},
		"another spoke":                {`{"spoke":"v0","hub":"v2","lost":[]}`, `recorded for version "v0" and hub "v2", expected version "v1" and another hub`},
		"an unknown hub":               {`{"spoke":"v1","hub":"v9","lost":[]}`, `recorded for the hub "v9": version v9 of kind Menu.example.com is not registered`},
		"no changes":                   {`{"spoke":"v1","hub":"v2","lost":7}`, "not a JSON array"},
		"other metadata":               {lost(`{"path":["metadata","finalizers"],"value":["x"]}`), "only labels and annotations"},
		"the kind":                     {lost(`{"path":["kind"],"value":"Secret"}`), "kind must not be changed"},
		"a value that does not fit":    {lost(`{"path":["spec","currency"],"value":7}`), "cannot unmarshal number"},
		"a label that does not fit":    {lost(`{"path":["metadata","labels"],"value":{"a":1}}`), "cannot unmarshal number"},
		"too large":                    {lost(`{"path":["spec","currency"],"value":"` + strings.Repeat("x", 256<<10) + `"}`), "bytes, expected at most 262144"},
		"neither form":                 {`{"spoke":"v1","hub":"v2"}`, "expected either lost or gzip"},
		"both forms":                   {`{"spoke":"v1","hub":"v2","lost":[],"gzip":""}`, "expected either lost or gzip"},
		"nothing compressed":           {`{"spoke":"v1","hub":"v2","gzip":"AAAA"}`, "gzip: unexpected EOF"},
		"what is verified and refused": {lost(`{"path":["spec","currency"],"value":"XXX"}`), "no such currency"},
	} {
		opts := []lossless.Option{lossless.VerifyRestored(func(_ context.Context, hub []byte) error {
			if m := into[hubMenu](t, string(hub)); m.Name != "m" || m.Kind != "Menu" || m.APIVersion != "example.com/v2" {
				t.Errorf("to be verified: %s", hub)
			}
			if strings.Contains(string(hub), "XXX") {
				return errors.New("no such currency")
			}
			return nil
		})}
		_, err := menuRegistry(t, opts...).Convert(t.Context(), []byte(noted(c.annotation)), menus)
		prefix := `cannot convert Menu m from example.com/v1 to example.com/v2: metadata.annotations[conversion.crdkit.github.io/lost]: Invalid value: `
		if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %s", name, err, c.message)
		}
		var fault *field.Error
		if !errors.As(err, &fault) || fault.Field != "metadata.annotations["+lossless.Annotation+"]" {
			t.Errorf("%s: got %#v, want a field error at the annotation", name, err)
		}
		got := convert(t, menuRegistry(t, append(opts, lossless.DropInvalidAnnotation())...), noted(c.annotation), menus)
		if diff := cmp.Diff(menuOf("v2", `{"name":"m"}`, `{"size":"Large"}`), got); diff != "" {
			t.Errorf("%s, dropped (-want +got):\n%s", name, diff)
		}
	}
}

// A forged note does not show in the spoke.
func TestLossless_ForgedNote(t *testing.T) {
	reg := menuRegistry(t)
	forged := noted(`{"spoke":"v1","hub":"v2","lost":[
		{"path":["spec","tags"],"value":[{"text":"forged"}]},
		{"path":["spec","currency"],"value":"CHF"},
		{"path":["spec","dishes"],"value":[{"name":"forged","price":1}]},
		{"path":["metadata","labels"],"value":{"forged":"x"}},
		{"path":["spec","extra"],"value":{"a":1}}]}`)
	got := convert(t, reg, forged, menus)
	want := menuOf("v2", `{"name":"m"}`, `{"size":"Large","currency":"CHF","extra":{"a":1}}`)
	if diff := cmp.Diff(into[any](t, want), into[any](t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The annotation of the hub is dropped.
func TestLossless_AnnotationOfHub(t *testing.T) {
	reg := menuRegistry(t)
	hub := menuOf("v2", `{"name":"m","annotations":{"`+lossless.Annotation+`":"mine"}}`, `{"size":"Large"}`)
	if got, want := convert(t, reg, hub, oldMenu1.GroupVersion()), menuOf("v1", `{"name":"m"}`, `{"size":"Large"}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLossless_PartialObjects(t *testing.T) {
	reg := menuRegistry(t)
	for _, hub := range []string{
		`{"apiVersion":"example.com/v2","kind":"Menu"}`,
		`{"apiVersion":"example.com/v2","kind":"Menu","metadata":{"name":"m"}}`,
		`{"apiVersion":"example.com/v2","kind":"Menu","metadata":{},"spec":{"hours":{"opens":0,"closes":7}}}`,
		`{"apiVersion":"example.com/v2","kind":"Menu","metadata":{"name":"m"},"spec":{},"unknown":{"x":[]}}`,
	} {
		want := into[map[string]any](t, hub)
		if want["metadata"] == nil {
			want["metadata"] = map[string]any{}
		}
		back := convert(t, reg, convert(t, reg, hub, oldMenu1.GroupVersion()), menus)
		if diff := cmp.Diff(want, into[map[string]any](t, back)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", hub, diff)
		}
	}
}

// The way to a lossless spoke may begin in another spoke. The hub is in the worker's memory then.
func TestLossless_BetweenSpokes(t *testing.T) {
	s := menuScheme()
	v3 := schema.GroupVersion{Group: "example.com", Version: "v3"}
	s.AddKnownTypeWithName(v3.WithKind("Menu"), &newMenu{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, menuToHub, menuFromHub),
		conversion.AddSpoke(reg,
			func(_ context.Context, in *newMenu, out *hubMenu) error { out.Spec = in.Spec; return nil },
			func(_ context.Context, in *hubMenu, out *newMenu) error { out.Spec = in.Spec; return nil }),
		conversion.Lossless(reg, oldMenu1, dishKeys),
	))
	want := menuOf("v3", `{"name":"m","labels":{"a":"b"},"annotations":{"v2-only":"x"}}`, richMenu)
	old := convert(t, reg, want, oldMenu1.GroupVersion())
	if diff := cmp.Diff(into[any](t, want), into[any](t, convert(t, reg, old, v3))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// newMenu is a version that can express everything.
type newMenu struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              hubSpec `json:"spec,omitzero"`
}

func (*newMenu) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

// TestLossless_AllSortsOfFunctions: each has something that most conversions have.
func TestLossless_AllSortsOfFunctions(t *testing.T) {
	type up func(context.Context, *oldMenu, *hubMenu) error
	type down func(context.Context, *hubMenu, *oldMenu) error
	for name, c := range map[string]struct {
		up   up
		down down
	}{
		"the way up has a default": {func(ctx context.Context, in *oldMenu, out *hubMenu) error {
			out.Spec.Currency = "EUR"
			if in.Spec.Opens == nil {
				out.Spec.Hours = &hubHours{Opens: 9}
			}
			return menuToHub(ctx, in, out)
		}, menuFromHub},
		"a value that the spoke does not know": {func(ctx context.Context, in *oldMenu, out *hubMenu) error {
			err := menuToHub(ctx, in, out)
			if out.Spec.Size == "Other" {
				out.Spec.Size = ""
			}
			return err
		}, func(ctx context.Context, in *hubMenu, out *oldMenu) error {
			err := menuFromHub(ctx, in, out)
			if in.Spec.Size == "XL" {
				out.Spec.Size = "Other"
			}
			return err
		}},
		"metadata are copied, and then changed": {func(ctx context.Context, in *oldMenu, out *hubMenu) error {
			out.ObjectMeta = in.ObjectMeta
			delete(out.Annotations, "size")
			return menuToHub(ctx, in, out)
		}, func(ctx context.Context, in *hubMenu, out *oldMenu) error {
			out.ObjectMeta = in.ObjectMeta
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations["size"] = in.Spec.Size
			return menuFromHub(ctx, in, out)
		}},
	} {
		reg := conversion.NewRegistry(menuScheme())
		expect.NoError(t, errors.Join(conversion.AddSpoke(reg, c.up, c.down), conversion.Lossless(reg, oldMenu1, dishKeys)))
		for _, spec := range []string{richMenu, `{}`, `{"size":"XL"}`, `{"currency":"CHF","tags":[{"text":"a"}]}`} {
			hub := menuOf("v2", `{"name":"m","annotations":{"x":"y"}}`, spec)
			spoke := convert(t, reg, hub, oldMenu1.GroupVersion())
			back := convert(t, reg, spoke, menus)
			if spec == `{}` { // the type does not tell it from nothing
				hub, back = textOf(t, into[hubMenu](t, hub)), textOf(t, into[hubMenu](t, back))
			}
			if diff := cmp.Diff(into[any](t, hub), into[any](t, back)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, spoke, diff)
			}
		}
	}
}

// One conflict takes nothing else with it. A price shows in the spoke in two ways.
func TestLossless_OneConflict(t *testing.T) {
	reg := conversion.NewRegistry(menuScheme())
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, menuToHub, func(ctx context.Context, in *hubMenu, out *oldMenu) error {
			err := menuFromHub(ctx, in, out)
			for i, dish := range in.Spec.Dishes {
				if dish.Vegan != nil { // half the price
					out.Spec.Dishes[i].Price /= 2
				}
			}
			return err
		}),
		conversion.Lossless(reg, oldMenu1, dishKeys)))
	m := randomMenu(rand.New(rand.NewPCG(1, 1)))
	m.Spec.Dishes = nil
	for i := range 200 {
		m.Spec.Dishes = append(m.Spec.Dishes, hubDish{Name: fmt.Sprint(i), Price: 10, Note: "x", Vegan: new(true)})
	}
	spoke := into[oldMenu](t, convert(t, reg, textOf(t, m), oldMenu1.GroupVersion()))
	for i := range 40 {
		spoke.Spec.Dishes[5*i].Price++
	}
	hub := convert(t, reg, textOf(t, spoke), menus)
	if got := strings.Count(hub, `"note":"x"`); got != 200 {
		t.Errorf("%d of 200 notes are left", got)
	}
	if got := strings.Count(hub, `"vegan":true`); got != 160 {
		t.Errorf("%d of 160 are vegan", got)
	}
	again := into[oldMenu](t, convert(t, reg, hub, oldMenu1.GroupVersion()))
	if diff := cmp.Diff(spoke.Spec, again.Spec); diff != "" {
		t.Errorf("(-edited +got):\n%s", diff)
	}
}

// The object around a moved field, which a move alone loses when nothing else is in it.
func TestLossless_MovedFields(t *testing.T) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	v1 := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "CronTab"}
	expect.NoError(t, errors.Join(conversion.AddFields(reg, v1, "v2", conversion.Rename("spec.address.host", "spec.host")), conversion.Lossless(reg, v1)))
	for _, spec := range []string{`{"address":{},"host":"h"}`, `{"address":{"x":{}},"ports":[1,2,3],"host":"h"}`, `{"host":null}`, `{"address":{}}`, `{}`} {
		hub := `{"apiVersion":"example.com/v2","kind":"CronTab","metadata":{"name":"c"},"spec":` + spec + `}`
		spoke := convert(t, reg, hub, v1.GroupVersion())
		if diff := cmp.Diff(into[any](t, hub), into[any](t, convert(t, reg, spoke, menus))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spoke, diff)
		}
	}
}

// selfMade is a hub that has a decoder of its own.
type selfMade hubMenu

func (*selfMade) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

func (m *selfMade) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*hubMenu)(m)) }

// A type with its own decoder does not see the annotation.
func TestLossless_OwnDecoder(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(oldMenu1, &selfMade{})
	s.AddKnownTypeWithName(menus.WithKind("Menu"), &hubMenu{})
	reg := conversion.NewRegistry(s)
	up := func(_ context.Context, in *selfMade, out *hubMenu) error {
		if in.APIVersion != "example.com/v1" || in.Kind != "Menu" || in.ManagedFields != nil {
			t.Errorf("got %+v", in)
		}
		out.ObjectMeta, out.Spec = in.ObjectMeta, in.Spec
		return nil
	}
	down := func(_ context.Context, in *hubMenu, out *selfMade) error {
		out.ObjectMeta, out.Spec = in.ObjectMeta, in.Spec
		out.Spec.Currency = ""
		return nil
	}
	expect.NoError(t, errors.Join(conversion.AddSpoke(reg, up, down), conversion.Lossless(reg, oldMenu1)))
	hub := menuOf("v2", `{"name":"m","managedFields":[{"manager":"x"}]}`, `{"currency":"CHF","size":"XL"}`)
	spoke := convert(t, reg, hub, oldMenu1.GroupVersion())
	if !strings.Contains(spoke, lossless.Annotation) {
		t.Errorf("nothing is noted: %s", spoke)
	}
	if diff := cmp.Diff(into[any](t, hub), into[any](t, convert(t, reg, spoke, menus))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A lossless spoke outlives its hub: v2 was the hub when the objects were stored; now it is v3.
func TestLossless_NewHub(t *testing.T) {
	hub := menuOf("v2", `{"name":"m"}`, richMenu)
	stored := convert(t, menuRegistry(t), hub, oldMenu1.GroupVersion())

	u := func(f func(in, out *unstructured.Unstructured)) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
		return func(_ context.Context, in, out *unstructured.Unstructured) error { f(in, out); return nil }
	}
	field := func(o *unstructured.Unstructured, path ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return v
	}
	reg := conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, errors.Join(
		// v3 has renamed spec to menu, which v2 knows as a whole, and v1 in part.
		conversion.AddFields(reg, menus.WithKind("Menu"), "v3", conversion.Rename("spec", "menu")),
		conversion.AddUnstructuredSpoke(reg, oldMenu1, "v3",
			u(func(in, out *unstructured.Unstructured) {
				s := oldSpec{}
				_ = runtime.DefaultUnstructuredConverter.FromUnstructured(field(in, "spec").(map[string]any), &s)
				old, now := oldMenu{Spec: s}, hubMenu{}
				_ = menuToHub(context.Background(), &old, &now)
				out.Object["menu"], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&now.Spec)
			}),
			u(func(in, out *unstructured.Unstructured) {
				s := hubSpec{}
				_ = runtime.DefaultUnstructuredConverter.FromUnstructured(field(in, "menu").(map[string]any), &s)
				now, old := hubMenu{Spec: s}, oldMenu{}
				_ = menuFromHub(context.Background(), &now, &old)
				out.Object["spec"], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&old.Spec)
			})),
		conversion.Lossless(reg, oldMenu1, lossless.ListMapKeys(keyed(menus.WithKind("Menu").GroupKind().WithVersion("v3"), "menu.dishes", "name"))),
		reg.Check(),
	))
	v3 := schema.GroupVersion{Group: "example.com", Version: "v3"}
	now := convert(t, reg, stored, v3)
	want := strings.NewReplacer("v2", "v3", `"spec"`, `"menu"`).Replace(hub)
	if diff := cmp.Diff(into[any](t, want), into[any](t, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Faults of Lossless are found at the start.
func TestLossless_FaultsAtStart(t *testing.T) {
	reg := menuRegistry(t)
	err := conversion.Lossless(reg, oldMenu1, lossless.ListMapKeys(keyed(oldMenu1, "spec.dishes", "name")),
		lossless.ListMapKeys(textOfDefinition(t, definition("v1!"))), lossless.ListMapKeys(nil))
	expect.ErrorContains(t, err,
		"the spoke is lossless already", "no CustomResourceDefinition has a schema of Menu.example.com in v2", "no CustomResourceDefinition found",
		"CustomResourceDefinition things.example.com has no schema",
	)
	if err := conversion.Lossless(reg, menus.WithKind("Menu")); err == nil || !strings.Contains(err.Error(), "v2 is the hub") {
		t.Errorf("the hub itself: %v", err)
	}
}

// List map keys are read from a definition.
func TestListMapKeys_Definition(t *testing.T) {
	texts := slices.Concat(poolKeyed, []byte("\n---\n"), keyed(oldMenu1, "spec.dishes", "price"), []byte("\n---\n"), dishKeyed) // other kinds and versions are passed over
	reg := conversion.NewRegistry(menuScheme())
	expect.NoError(t, errors.Join(conversion.AddSpoke(reg, menuToHub, menuFromHub), conversion.Lossless(reg, oldMenu1, lossless.ListMapKeys(texts))))
	if spoke := convert(t, reg, menuOf("v2", `{}`, richMenu), oldMenu1.GroupVersion()); !strings.Contains(spoke, `{\"key\":{\"name\":\"soup\"}}`) {
		t.Errorf("soup is not told by its name: %s", spoke)
	}
}

// A copy of the hub, which the function to the spoke writes, is not an edit of the user. The annotation
// comes from a release that did not write one.
func TestHubCopy_EditedSpoke(t *testing.T) {
	const stored = "example.com/stored"
	hub := menuOf("v2", `{"name":"m"}`, `{"currency":"EUR","dishes":[{"name":"soup","price":1,"note":"hot"}]}`)
	old := into[oldMenu](t, convert(t, menuRegistry(t), hub, oldMenu1.GroupVersion()))
	for _, c := range []struct {
		opts []lossless.Option
		want string
	}{
		{[]lossless.Option{dishKeys}, `{"dishes":[{"name":"soup","price":2,"note":"hot"}]}`},
		{[]lossless.Option{dishKeys, lossless.HubCopy(stored)}, `{"currency":"EUR","dishes":[{"name":"soup","price":2,"note":"hot"}]}`},
	} {
		reg := conversion.NewRegistry(menuScheme())
		expect.NoError(t, errors.Join(
			conversion.AddSpoke(reg, func(ctx context.Context, in *oldMenu, out *hubMenu) error {
				if text, ok := in.Annotations[stored]; ok {
					out.Spec.Currency = into[hubSpec](t, text).Currency
				}
				delete(out.Annotations, stored)
				return menuToHub(ctx, in, out)
			}, func(ctx context.Context, in *hubMenu, out *oldMenu) error {
				out.Annotations = map[string]string{stored: textOf(t, in.Spec)}
				return menuFromHub(ctx, in, out)
			}),
			conversion.Lossless(reg, oldMenu1, c.opts...),
		))
		type note struct{ Of string }
		now := into[oldMenu](t, convert(t, reg, hub, oldMenu1.GroupVersion()))
		same := into[note](t, old.Annotations[lossless.Annotation]) == into[note](t, now.Annotations[lossless.Annotation])
		if want := len(c.opts) == 2; same != want {
			t.Errorf("%d options: the annotation is of the same spoke: got %t, want %t", len(c.opts), same, want)
		}
		edited := old
		edited.Spec.Dishes = []oldDish{{Name: "soup", Price: 2}}
		got := into[hubMenu](t, convert(t, reg, textOf(t, edited), menus))
		if diff := cmp.Diff(c.want, textOf(t, got.Spec)); diff != "" || len(got.Annotations) > 0 {
			t.Errorf("%d options: %v (-want +got):\n%s", len(c.opts), got.Annotations, diff)
		}
	}
}

// FuzzLossless feeds arbitrary annotations: what is accepted must not show in the spoke.
func FuzzLossless(f *testing.F) {
	reg := menuRegistry(f)
	f.Add(`{"spoke":"v1","hub":"v2","lost":[{"path":["spec","size"],"value":"XL","was":"x"}]}`)
	spoke := into[oldMenu](f, convert(f, reg, menuOf("v2", `{"name":"m"}`, richMenu), oldMenu1.GroupVersion()))
	f.Add(spoke.Annotations[lossless.Annotation])
	f.Add(`{"spoke":"v1","hub":"v2","lost":[{"path":["spec"],"value":{"tags":[{"text":"x"}],"currency":"y"}},{"path":["metadata","labels","a"],"value":"b"}]}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		spoke.Annotations = maps.Clone(spoke.Annotations)
		spoke.Annotations[lossless.Annotation] = annotation
		hub, err := reg.Convert(t.Context(), []byte(textOf(t, spoke)), menus)
		if err != nil {
			return
		}
		again := into[oldMenu](t, convert(t, reg, string(hub), oldMenu1.GroupVersion()))
		delete(again.Annotations, lossless.Annotation)
		want := spoke
		want.Annotations = nil
		if len(again.Annotations) == 0 {
			again.Annotations = nil
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%q shows (-want +got):\n%s", annotation, diff)
		}
	})
}

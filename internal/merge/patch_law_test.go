package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// missing is the value of a member that is not there.
type missing struct{}

// edit is a value, and what one edit made of it.
type edit struct {
	raw, before any
	after, want any
	// delta is what is to be added where raw lacks the value.
	delta any
}

// world draws edits of which the outcome is certain: every element of a list
// can be told from every other.
type world struct {
	*rapid.T
	serial int
}

func (w *world) chance(percent int, label string) bool {
	return rapid.IntRange(1, 100).Draw(w.T, label) <= percent
}

func (w *world) count(most int, label string) int { return rapid.IntRange(0, most).Draw(w.T, label) }

// fresh returns a number that was not there yet.
func (w *world) fresh() json.Number {
	w.serial++
	return json.Number(fmt.Sprint(9007199254740992 + w.serial))
}

var names = []string{"", "a", "b", "c", "a/b", "m~n", "~1", "0", "-", "é", "\u2028", "<&>", "\"\\\n", "type", "key"}

// scalar draws a value that may be there already.
func (w *world) scalar() any {
	return rapid.SampledFrom([]any{
		nil, true, false, "", "x", "0", "<&>", "🍕\u2028", json.Number("0"), json.Number("1"), json.Number("1.5e300"), json.Number("9007199254740993"),
	}).Draw(w.T, "scalar")
}

// value draws a value that the author's function made.
func (w *world) value(depth int) any {
	switch n := w.count(5, "kind"); {
	case n == 0 && depth > 0:
		v := map[string]any{}
		for range w.count(3, "members") {
			v[rapid.SampledFrom(names).Draw(w.T, "name")] = w.value(depth - 1)
		}
		return v
	case n == 1 && depth > 0:
		v := []any{}
		for range w.count(3, "elements") {
			v = append(v, w.value(depth-1))
		}
		return v
	default:
		return w.scalar()
	}
}

// edit draws a value and an edit of it.
func (w *world) edit(depth int) edit {
	var e edit
	switch n := w.count(5, "kind"); {
	case n <= 1 && depth > 0:
		e = w.object(depth, map[string]edit{})
	case n == 2 && depth > 0:
		e = w.keyed(depth)
	case n == 3:
		e = w.list(func() edit {
			id := w.fresh()
			return edit{id + ".0", id, id, id + ".0", missing{}} // the Go type spells it otherwise
		}, func() any { return w.fresh() })
	default:
		v := w.scalar()
		e = edit{v, v, v, v, missing{}}
		if v == json.Number("1") && w.chance(50, "respell") {
			e.raw, e.want = json.Number("1.0"), json.Number("1.0")
		}
	}
	if w.chance(10, "replace") {
		if v := w.value(depth); kind(v) != kind(e.before) || kind(v) == "" {
			e.after, e.want, e.delta = v, v, v
			if equal(v, e.before) {
				e.want, e.delta = e.raw, missing{}
			}
		}
	}
	return e
}

// keyed draws a list of objects that can be told apart.
func (w *world) keyed(depth int) edit {
	same := func(v any) edit { return edit{v, v, v, v, missing{}} }
	// So many strings of its own that no edit outweighs them.
	identity := func() map[string]any {
		n := w.fresh().String()
		return map[string]any{"host": "host " + n, "zone": "zone " + n, "address": "address " + n, "owner": "owner " + n}
	}
	switch w.count(3, "key") {
	case 0, 1: // by what no other has
		return w.list(func() edit {
			members := map[string]edit{"deep": w.object(depth-1, map[string]edit{})}
			for name, v := range identity() {
				members[name] = same(v)
			}
			return w.decorated(members)
		}, func() any {
			v := identity()
			v["deep"] = map[string]any{"a": w.value(depth - 1)}
			return v
		})
	case 2: // by two members
		return w.list(func() edit {
			w.serial++
			port, protocol := json.Number(fmt.Sprint(w.serial/2)), []string{"TCP", "UDP"}[w.serial%2]
			return w.decorated(map[string]edit{"port": same(port), "protocol": same(protocol)})
		}, func() any { return w.fresh() })
	default: // they are removed and moved, and the added ones are not objects
		return w.list(func() edit {
			return w.decorated(map[string]edit{"n": same(w.fresh())})
		}, func() any { return w.fresh() })
	}
}

func kind(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	default:
		return ""
	}
}

// object draws an object that has the given members, and others.
func (w *world) object(depth int, members map[string]edit) edit {
	given := len(members)
	for range w.count(4, "members") {
		name := rapid.SampledFrom(names).Draw(w.T, "name")
		if _, ok := members[name]; !ok {
			members[name] = w.member(depth - 1)
		}
	}
	e := w.decorated(members)
	if d := e.delta.(map[string]any); len(d) == 0 || given > 0 {
		e.delta = missing{} // elements are never missing
	}
	return e
}

// decorated draws an object that has the given members, and unknown ones.
func (w *world) decorated(members map[string]edit) edit {
	raw, before, after, want, delta := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	put := func(m map[string]any, name string, v any) {
		if v != (missing{}) {
			m[name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		e := members[name]
		put(raw, name, e.raw)
		put(before, name, e.before)
		put(after, name, e.after)
		put(want, name, e.want)
		put(delta, name, e.delta)
	}
	for range w.count(2, "unknown") {
		name := "unknown/" + rapid.SampledFrom(names).Draw(w.T, "name")
		raw[name] = w.value(2)
		want[name] = raw[name]
	}
	return edit{raw, before, after, want, delta}
}

// member draws a member and an edit of it.
func (w *world) member(depth int) edit {
	e := w.edit(depth)
	switch n := w.count(19, "member"); n {
	case 0, 1: // removed
		e.after, e.want, e.delta = missing{}, missing{}, missing{}
	case 2, 3: // new
		e.after = w.value(depth)
		e = edit{missing{}, missing{}, e.after, e.after, e.after}
	case 4, 5: // only in before: raw lacks it, or has null
		e.raw, e.want = missing{}, e.delta
		if e.after != (missing{}) && w.chance(30, "null") && e.before != nil {
			e.raw = nil
			if e.want == (missing{}) {
				e.want = nil
			}
		}
	case 6: // only in raw: the Go type leaves it out
		e.before, e.after, e.want, e.delta = missing{}, missing{}, e.raw, missing{}
		if w.chance(50, "set") {
			e.after = w.value(depth)
			e.want, e.delta = over(e.raw, e.after), e.after
		}
	case 7: // a list that raw has otherwise
		if _, ok := e.before.([]any); ok {
			e.raw = append([]any{w.value(1)}, slices.Concat([]any{}, asList(e.raw))...)
			e.want = e.after
			if equal(e.before, e.after) {
				e.want = e.raw
			}
		}
	}
	return e
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// over lays new members over an object that the Go type had left out.
func over(raw, after any) any {
	r, ok1 := raw.(map[string]any)
	a, ok2 := after.(map[string]any)
	if !ok1 || !ok2 {
		return after
	}
	r = maps.Clone(r)
	for name, v := range a {
		if old, ok := r[name]; ok {
			v = over(old, v)
		}
		r[name] = v
	}
	return r
}

// list draws a list, in which elements are edited, removed, added and moved.
func (w *world) list(old func() edit, new func() any) edit {
	raw, before := []any{}, []any{}
	var stay []edit
	for range w.count(5, "elements") {
		e := old()
		raw, before = append(raw, e.raw), append(before, e.before)
		if !w.chance(15, "remove") {
			stay = append(stay, e)
		}
	}
	for range w.count(2, "moves") {
		if len(stay) > 1 {
			i, j := w.count(len(stay)-1, "from"), w.count(len(stay)-1, "to")
			e := stay[i]
			stay = slices.Insert(slices.Delete(stay, i, i+1), j, e)
		}
	}
	for range w.count(2, "adds") {
		v := new()
		stay = slices.Insert(stay, w.count(len(stay), "at"), edit{after: v, want: v})
	}
	after, want := []any{}, []any{}
	for _, e := range stay {
		after, want = append(after, e.after), append(want, e.want)
	}
	e := edit{raw, before, after, want, after}
	if equal(before, after) {
		e.delta = missing{}
	}
	return e
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// encode writes a value; reversed is another order of members, and another
// spelling of strings.
func encode(v any, reversed bool) []byte {
	switch v := v.(type) {
	case map[string]any:
		var members []string
		names := slices.Sorted(maps.Keys(v))
		if reversed {
			slices.Reverse(names)
		}
		for _, name := range names {
			members = append(members, string(encode(name, reversed))+":"+string(encode(v[name], reversed)))
		}
		return []byte("{" + strings.Join(members, ",") + "}")
	case []any:
		var elements []string
		for _, e := range v {
			elements = append(elements, string(encode(e, reversed)))
		}
		return []byte("[" + strings.Join(elements, ", ") + "]")
	case string:
		if reversed {
			s, _ := jsontext.AppendQuote(nil, v)
			return s
		}
	}
	s, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return s
}

// TestPatch_EditsOfTheGoValue is the first law of the package.
// Edits of the Go value are edits of raw.
func TestPatch_EditsOfTheGoValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		e := w.object(4, map[string]edit{})
		raw := encode(e.raw, false)
		got, merged, err := Patch(raw, encode(e.before, true), encode(e.after, true), nil, false, true)
		if err != nil {
			t.Fatal(err)
		}
		if got != nil && !equal(decode(t, merged), e.want) {
			t.Fatalf("want   %s\nmerged %s", encode(e.want, false), merged)
		}
		if patched := decode(t, apply(t, raw, got)); !equal(patched, e.want) {
			t.Fatalf("raw    %s\nbefore %s\nafter  %s\nwant   %s\ngot    %s\npatch  %s", raw,
				encode(e.before, true), encode(e.after, true), encode(e.want, false), encode(patched, false), got)
		}
		if equal(e.before, e.after) && got != nil {
			t.Fatalf("nothing changed, but the patch is %s", got)
		}
	})
}

// TestPatch_UnknownMembersAreNeverMixed is the second law: it holds also where it is
// uncertain which element is which.
func TestPatch_UnknownMembersAreNeverMixed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		before := w.doc(4)
		raw := w.decorate(before)
		after := w.mutate(before, 4)
		got, _, err := Patch(encode(raw, false), encode(before, true), encode(after, true), nil, false, true)
		if err != nil {
			t.Fatal(err)
		}
		patched := decode(t, apply(t, encode(raw, false), got))
		context := func() string {
			return fmt.Sprintf("\nraw     %s\nafter   %s\npatched %s\npatch   %s",
				encode(raw, false), encode(after, true), encode(patched, false), got)
		}

		had, have := map[string]int{}, map[string]int{}
		bare(raw, had)
		if known := bare(patched, have); !equal(known, after) {
			t.Fatalf("without what is unknown it is not what the function made%s", context())
		}
		for members, n := range have {
			if n > had[members] {
				t.Fatalf("%s was in %d objects, and is in %d%s", members, had[members], n, context())
			}
		}
		if equal(before, after) && got != nil {
			t.Fatalf("nothing changed, but there is a patch%s", context())
		}
	})
}

// doc draws an object of few different values, so that many are equal.
func (w *world) doc(depth int) map[string]any {
	v := map[string]any{}
	for range w.count(3, "members") {
		v[rapid.SampledFrom([]string{"", "a", "name", "type"}).Draw(w.T, "name")] = w.few(depth)
	}
	return v
}

func (w *world) few(depth int) any {
	switch n := w.count(4, "kind"); {
	case n <= 1 && depth > 0:
		return w.doc(depth - 1)
	case n <= 3 && depth > 0:
		v := []any{}
		for range w.count(6, "elements") {
			v = append(v, w.few(depth-1))
		}
		return v
	default:
		return rapid.SampledFrom([]any{nil, "", json.Number("1"), json.Number("12"), json.Number("2")}).Draw(w.T, "scalar")
	}
}

const unknown = "unknown/"

// decorate returns a copy of v with unknown members, all of them different.
func (w *world) decorate(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			c[name] = w.decorate(v[name])
		}
		for _, name := range []string{unknown, unknown + "~"} {
			if w.chance(60, "unknown") {
				c[name] = w.fresh()
			}
		}
		return c
	case []any:
		c := []any{}
		for _, e := range v {
			c = append(c, w.decorate(e))
		}
		return c
	default:
		return v
	}
}

// mutate returns v after random edits.
func (w *world) mutate(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		c := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch n := w.count(9, "edit"); {
			case n == 0:
			case n == 1:
				c[name] = w.few(depth - 1)
			case n <= 5:
				c[name] = w.mutate(v[name], depth-1)
			default:
				c[name] = v[name]
			}
		}
		if w.chance(20, "add") {
			c["name"] = w.few(depth - 1)
		}
		return c
	case []any:
		c := []any{}
		for _, e := range v {
			switch n := w.count(9, "edit"); {
			case n == 0:
			case n == 1:
				c = append(c, e, e)
			case n == 2:
				c = append(c, w.few(depth-1), e)
			case n <= 5:
				c = append(c, w.mutate(e, depth-1))
			default:
				c = append(c, e)
			}
		}
		if len(c) > 1 && w.chance(30, "move") {
			i := w.count(len(c)-1, "from")
			e := c[i]
			c = slices.Insert(slices.Delete(c, i, i+1), w.count(len(c)-1, "to"), e)
		}
		return c
	default:
		return v
	}
}

// bare returns v without its unknown members, and counts the objects that have
// the same ones.
func bare(v any, count map[string]int) any {
	switch v := v.(type) {
	case map[string]any:
		known, rest := map[string]any{}, map[string]any{}
		for name, e := range v {
			if strings.HasPrefix(name, unknown) {
				rest[name] = e
			} else {
				known[name] = bare(e, count)
			}
		}
		if len(rest) > 0 {
			count[string(encode(rest, false))]++
		}
		return known
	case []any:
		c := []any{}
		for _, e := range v {
			c = append(c, bare(e, count))
		}
		return c
	default:
		return v
	}
}

// TestReader_SharingReadsTheSame checks the reader's short cut: to read a text side by
// side with another one, and to take from there what is the same.
func TestReader_SharingReadsTheSame(t *testing.T) {
	read := func(text, like []byte, deep, first bool) (string, error) {
		var r reader
		var all func(n *node) string
		all = func(n *node) string {
			s := fmt.Sprintf("%c%s", n.kind, n.text)
			for _, k := range r.kids(n) {
				s += fmt.Sprintf(" %q:(%s)", k.name, all(k))
			}
			return s
		}
		var l *node
		if like != nil {
			var err error
			if l, err = r.object(like, nil, false); err != nil {
				return "", err
			}
			if first {
				all(l)
			}
		}
		n, err := r.object(text, l, deep)
		if err != nil {
			return "", err
		}
		return all(n), nil
	}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		list := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "12", "22", "[]", `"a"`, `{"a":12}`, `{"a":1,"a":2,"b":3,"c":4}`}), 0, 20)
		pairs := rapid.SliceOfN(rapid.SampledFrom([]string{`"a":1`, `"b":12`, `"":0`, `"c" : [2]`, `"d":{}`}), 0, 20)
		like := []byte(`{"l":[` + strings.Join(list.Draw(t, "list"), ",") + `],"m":{` + strings.Join(pairs.Draw(t, "pairs"), ", ") + `}}`)
		text := slices.Clone(like)
		for range 1 + w.count(2, "splices") {
			i := w.count(len(text), "from")
			j := min(len(text), i+w.count(4, "length"))
			insert := []byte(rapid.StringMatching(`[\[\]{},:"0 12a.]{0,4}`).Draw(t, "text"))
			if w.chance(50, "copy") {
				k := w.count(len(text), "copy")
				insert = slices.Clone(text[k:min(len(text), k+w.count(20, "length"))])
			}
			text = slices.Replace(text, i, j, insert...)
		}
		if _, err := read(text, nil, false, false); (err == nil) != json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		want, wantErr := read(text, nil, false, false)
		for _, how := range [][2]bool{{false, false}, {false, true}, {true, false}} {
			got, err := read(text, like, how[0], how[1])
			if (err == nil) != (wantErr == nil) || err == nil && got != want {
				t.Fatalf("%v:\n%s like\n%s\nwant %s %v\ngot  %s %v", how, text, like, want, wantErr, got, err)
			}
		}
	})
}

// FuzzPatch checks what holds for any input: no panic, the same bytes twice, and
// a patch that the API server can apply; and the third law, that raw becomes
// after when it is the same as before.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"l":[{"name":"a","u":1},{"name":"b"}]}`), []byte(`{"l":[{"name":"a"},{"name":"b"}]}`), []byte(`{"l":[{"name":"b"},{"name":"c"},{"name":"a"}]}`))
	f.Add([]byte(`{"spec":null,"":{"~/":1}}`), []byte(`{"spec":{"a":[]},"":{"~/":1}}`), []byte(`{"spec":{"a":[null]},"":{}}`))
	f.Add([]byte(`{"a":{"x":1},"a":{"y":[1,2]}}`), []byte(`{"a":{"y":[1,2]}}`), []byte(`{"a":{"y":[2,{},1]}}`))
	f.Add([]byte(" {\"\xff\" : [12,2, 3], \"\\ud83c\":1}"), []byte("{\"\ufffd\":[12,2,3]}"), []byte("{\"\ufffd\":[1,22,3]}"))
	f.Add([]byte(`{"l":[[],[[]],{},{"a":1}]}`), []byte(`{"l":[[],[[]],{},{"a":1}]}`), []byte(`{"l":[{"a":1},[[],[]],{},{"a":1}]}`))
	fuzz(f, false)
}

// FuzzPatchConverted checks the same where lists may have another order.
func FuzzPatchConverted(f *testing.F) {
	f.Add([]byte(`{"l":[{"host":"b","u":1},{"host":"a"}]}`), []byte(`{"l":[{"host":"a"},{"host":"b"}]}`), []byte(`{"l":[{"host":"a"},{"host":"b","n":1},{"host":"c"}]}`))
	f.Add([]byte(`{"l":[{"name":"x","u":1},{"name":"y"}],"k":[2,1,2]}`), []byte(`{"l":[{"name":"y"},{"name":"x"}],"k":[1,2,2]}`), []byte(`{"l":[{"name":"x","n":{}}],"k":[2,2]}`))
	f.Add([]byte(`{"l":[{"v":"1"},{"v":"2"},{}]}`), []byte(`{"l":[{},{"v":"2"},{"v":"1"}]}`), []byte(`{"l":[{"v":"2"},{"v":"1","n":1},{"n":0}]}`))
	f.Add([]byte(`{"l":[{"a":"1","b":"2","u":1},{"a":"2","b":"1"}]}`), []byte(`{"l":[{"a":"1","b":"2"},{"a":"2","b":"1"}]}`), []byte(`{"l":[{"a":"2","b":"2"},{"a":"1","b":"1"}]}`))
	fuzz(f, true)
}

func fuzz(f *testing.F, converted bool) {
	said := KeysOf("l", "host")
	f.Fuzz(func(t *testing.T, raw, before, after []byte) {
		check := func(raw, before, after []byte, keys *listmapkeys.Tree) (patched any, ok bool) {
			got, merged, err := Patch(raw, before, after, keys, converted, true)
			if err != nil {
				return nil, false
			}
			if again, _, err := Patch(raw, before, after, keys, converted, true); err != nil || string(again) != string(got) {
				t.Fatalf("%s, and then %s, %v", got, again, err)
			}
			if !json.Valid(raw) || !json.Valid(before) || !json.Valid(after) {
				return nil, false // nothing changed, so that nothing was read
			}
			raw = []byte(strings.TrimLeft(string(raw), " \t\r\n")) // json-patch looks at the first byte
			patched = decode(t, apply(t, raw, got))
			if got != nil && !equal(decode(t, merged), patched) {
				t.Errorf("%s makes of %s\n%v, and not\n%s", got, raw, patched, merged)
			}
			return patched, true
		}
		for _, keys := range []*listmapkeys.Tree{nil, said} {
			check(raw, before, after, keys)
			if got, ok := check(before, before, after, keys); ok && string(before) != string(after) {
				if want := decode(t, after); !equal(got, want) {
					t.Errorf("from %s\nwant %v\ngot  %v", before, want, got)
				}
			}
		}
	})
}

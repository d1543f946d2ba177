package merge_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/merge"
)

// noMaps knows no objects with fields of any name.
func noMaps() *listmapkeys.Tree { return nil }

// testKeys says that lists named toppings have the key name, and lists named
// ports the keys port and protocol.
func testKeys(path []string) []string {
	switch path[len(path)-1] {
	case "toppings":
		return []string{"name"}
	case "ports":
		return []string{"protocol", "port"}
	default:
		return nil
	}
}

// testTree says the same, as far as the objects of these tests are nested.
var testTree = listmapkeys.OfSchema(testSchema(7))

func testSchema(depth int) map[string]any {
	if depth < 0 {
		return nil
	}
	inner := testSchema(depth - 1)
	return map[string]any{
		"properties": map[string]any{
			"toppings": map[string]any{"x-kubernetes-list-map-keys": []any{"name"}, "items": inner},
			"ports":    map[string]any{"x-kubernetes-list-map-keys": []any{"protocol", "port"}, "items": inner},
		},
		"additionalProperties": inner,
	}
}

func diff(t merge.Failer, b, h []byte) merge.Changes {
	t.Helper()
	changes, err := merge.Diff(b, h, testTree)
	if err != nil {
		t.Fatalf("%v\nb %s\nh %s", err, b, h)
	}
	return changes
}

func apply(t merge.Failer, changes merge.Changes, b2 []byte) []byte {
	t.Helper()
	got, err := changes.ApplyUnedited(b2, testTree)
	if err != nil {
		t.Fatalf("%v\nb2 %s", err, b2)
	}
	if !json.Valid(got) {
		t.Fatalf("not JSON: %s", got)
	}
	return got
}

// world draws values.
type world struct {
	*rapid.T
	sloppy bool // whether keys may be missing, or there twice
}

func (w *world) count(most int, label string) int { return rapid.IntRange(0, most).Draw(w.T, label) }

func (w *world) chance(percent int, label string) bool { return w.count(99, label) < percent }

func (w *world) scalar() any {
	return rapid.SampledFrom([]any{
		nil, true, "", "<&>", "🍕\u2028", json.Number("1"), json.Number("1.0"), json.Number("9007199254740993"),
	}).Draw(w.T, "scalar")
}

var names = []string{"a", "b", "<", "toppings", "ports", "list"}

func (w *world) value(depth int) any {
	switch n := w.count(5, "kind"); {
	case n <= 1 && depth > 0:
		return w.object(depth)
	case n <= 3 && depth > 0:
		return w.list(rapid.SampledFrom(names).Draw(w.T, "as"), depth)
	default:
		return w.scalar()
	}
}

func (w *world) object(depth int) map[string]any {
	v := map[string]any{}
	for range w.count(4, "members") {
		w.member(v, depth)
	}
	return v
}

// member sets some member. One with the name of a list with keys is such a list.
func (w *world) member(v map[string]any, depth int) {
	name := rapid.SampledFrom(names).Draw(w.T, "name")
	if (name == "toppings" || name == "ports") && depth > 0 && !w.sloppy {
		v[name] = w.list(name, depth-1)
	} else {
		v[name] = w.value(depth - 1)
	}
}

func (w *world) list(name string, depth int) []any {
	v := []any{}
	for range w.count(5, "elements") {
		v = w.add(v, name, depth)
	}
	return v
}

// add inserts an element into a list of that name, somewhere.
func (w *world) add(l []any, name string, depth int) []any {
	var element any
	switch keys := testKeys([]string{name}); {
	case keys == nil || w.sloppy && w.chance(10, "another"):
		element = w.value(depth - 1)
	default:
		object := w.object(depth - 1)
		for _, key := range keys {
			object[key] = rapid.SampledFrom([]any{"a", "b", "c", "d", "e", json.Number("1")}).Draw(w.T, "key")
		}
		if w.chance(20, "key missing") {
			delete(object, "protocol")
		}
		element = object
		if !w.sloppy && slices.ContainsFunc(l, func(e any) bool { return key(e, keys) == key(object, keys) }) {
			return l
		}
	}
	return slices.Insert(slices.Clone(l), w.count(len(l), "at"), element)
}

// key returns what tells an element from others.
func key(e any, keys []string) string {
	object, _ := e.(map[string]any)
	var values []any
	for _, key := range keys {
		value, ok := object[key]
		values = append(values, ok, value)
	}
	return fmt.Sprintf("%#v", values)
}

// edit returns v with some changes. Most are losses if it is for a conversion.
func (w *world) edit(name string, v any, depth int, loss bool) any {
	if w.chance(5, "replace") && len(testKeys([]string{name})) == 0 {
		return w.value(depth)
	}
	often := 10
	if loss {
		often = 30
	}
	switch v := v.(type) {
	case map[string]any:
		c := map[string]any{}
		keys := testKeys([]string{name})
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch {
			case slices.Contains(keys, name) && !w.sloppy:
				c[name] = v[name]
			case !w.chance(often, "remove"):
				c[name] = w.edit(name, v[name], depth-1, loss)
			}
		}
		if !loss && w.chance(30, "add") && depth > 0 {
			before := maps.Clone(c)
			w.member(c, depth)
			for _, key := range keys {
				if _, ok := before[key]; ok {
					c[key] = before[key]
				}
			}
		}
		return c
	case []any:
		c := []any{}
		for _, e := range v {
			if !w.chance(often/2, "drop") {
				c = append(c, w.element(name, e, depth-1, loss))
			}
		}
		if w.chance(25, "insert") {
			c = w.add(c, name, depth)
		}
		if len(c) > 1 && w.chance(25, "move") {
			i := w.count(len(c)-1, "from")
			e := c[i]
			c = slices.Insert(slices.Delete(c, i, i+1), w.count(len(c)-1, "to"), e)
		}
		return c
	default:
		if w.chance(25, "change") {
			return w.scalar()
		}
		return v
	}
}

// element edits an element, which keeps its key.
func (w *world) element(list string, e any, depth int, loss bool) any {
	if _, ok := e.(map[string]any); !ok {
		list = ""
	}
	return w.edit(list, e, depth, loss)
}

// draw returns an object H, and a B that is a poorer H or has nothing to do with it.
func (w *world) draw() (b, h map[string]any) {
	h = w.object(4)
	if w.chance(20, "independent") {
		return w.object(4), h
	}
	b, ok := w.edit("", h, 4, !w.chance(30, "any edit")).(map[string]any)
	if !ok {
		b = map[string]any{}
	}
	return b, h
}

// The changes that Diff finds make H of B.
func TestDiff_MakesHOfB(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, sloppy: rapid.Bool().Draw(t, "sloppy")}
		bValue, hValue := w.draw()
		b, h := merge.Encode(bValue, true), merge.Encode(hValue, false)
		changes := diff(t, b, h)
		if got := apply(t, changes, b); !reflect.DeepEqual(merge.Decode(t, got), hValue) {
			t.Fatalf("b    %s\nh    %s\ngot  %s\nfrom %s", b, h, got, changes.Encode())
		}
		for name, all := range map[string]merge.Changes{"parts": changes.Parts(), "always": changes, "compact": changes.Compact()} {
			modes := make([]merge.Mode, len(all))
			if name == "always" {
				for i := range modes {
					modes[i] = merge.Always
				}
			}
			got, void, err := all.Apply(b, testTree, noMaps, modes, false)
			if err != nil || len(void) > 0 || !reflect.DeepEqual(merge.Decode(t, got), hValue) {
				t.Fatalf("%s: b %s\nh    %s\ngot  %s\nfrom %s\nvoid %v, %v", name, b, h, got, all.Encode(), void, err)
			}
		}
		if again := diff(t, b, h); string(again.Encode()) != string(changes.Encode()) {
			t.Fatalf("%s, and then %s", changes.Encode(), again.Encode())
		}
		parsed, err := merge.Parse(changes.Encode())
		if diff := cmp.Diff(string(changes.Encode()), string(parsed.Encode())); err != nil || diff != "" {
			t.Fatalf("%s reads as another: %v %s", changes.Encode(), err, diff)
		}
		if equal := merge.Encode(bValue, false); len(diff(t, b, equal)) > 0 || string(apply(t, nil, b)) != string(b) {
			t.Fatalf("changes between equal objects: %s", diff(t, b, equal).Encode())
		}
	})
}

func TestApply_UserWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		b, h := w.draw()
		b2, ok := w.edit("", b, 4, false).(map[string]any)
		if !ok {
			t.Skip("not an object")
		}
		changes := diff(t, merge.Encode(b, true), merge.Encode(h, false))
		if len(changes) > 0 && w.chance(30, "subset") {
			i := w.count(len(changes)-1, "begin")
			changes = changes[i : i+w.count(len(changes)-i, "length")]
		}
		text := merge.Encode(b2, false)
		before := string(text)
		got := apply(t, changes, text)
		if string(text) != before {
			t.Fatalf("the input is now %s", text)
		}
		if err := wins("", b, b2, merge.Decode(t, got)); err != "" {
			t.Fatalf("%s\nb   %s\nh   %s\nb2  %s\ngot %s\nby  %s", err, merge.Encode(b, true), merge.Encode(h, false), before, got, changes.Encode())
		}
	})
}

// onlyNew reports whether an object has nothing that the old one had.
func onlyNew(old, now any) bool {
	was, _ := old.(map[string]any)
	is, ok := now.(map[string]any)
	for name := range was {
		_, there := is[name]
		ok = ok && !there
	}
	return ok && was != nil
}

// wins returns where got lacks an edit of the user, which lies between b and b2,
// looking into objects and lists with keys.
func wins(path string, b, b2, got any) string {
	switch b := b.(type) {
	case map[string]any:
		b2, ok := b2.(map[string]any)
		if !ok {
			break
		}
		got, ok := got.(map[string]any)
		if !ok {
			return path + " is no object any more"
		}
		for name, old := range b {
			value, stays := b2[name]
			have, there := got[name]
			switch {
			case !stays && there && path == "" && onlyNew(old, have):
			case !stays && there:
				return path + "." + name + " was removed"
			case stays && !reflect.DeepEqual(old, value):
				if !there {
					return path + "." + name + " was changed"
				}
				if err := wins(path+"."+name, old, value, have); err != "" {
					return err
				}
			}
		}
		return ""
	case []any:
		b2, ok := b2.([]any)
		if !ok {
			break
		}
		keys := testKeys([]string{path[strings.LastIndex(path, ".")+1:]})
		if keys == nil {
			return ""
		}
		got, ok := got.([]any)
		if !ok {
			return path + " is no list any more"
		}
		find := func(list []any, wanted string) (any, bool) {
			i := slices.IndexFunc(list, func(e any) bool { return key(e, keys) == wanted })
			if i < 0 {
				return nil, false
			}
			return list[i], true
		}
		for _, old := range b {
			key := key(old, keys)
			value, stays := find(b2, key)
			have, there := find(got, key)
			switch {
			case !stays && there:
				return path + key + " was removed"
			case stays && !reflect.DeepEqual(old, value):
				if !there {
					return path + key + " was changed"
				}
				if err := wins(path, old, value, have); err != "" {
					return err
				}
			}
		}
		return ""
	}
	if !reflect.DeepEqual(b2, got) {
		return path + " was changed"
	}
	return ""
}

// visible returns a list as an older version shows it: without hidden elements, and of the others
// without hidden members.
func visible(list []any) []any {
	shown := []any{}
	for _, e := range list {
		e := maps.Clone(e.(map[string]any))
		if e["hidden"] == nil {
			delete(e, "type")
			shown = append(shown, e)
		}
	}
	return shown
}

// Some of the changes to a list may contradict an edit elsewhere and be left out. The user sees the same
// list then, so that no other change has to be left out with them.
func TestDiff_AnyOfTheChangesToAListMayBeLeftOut(t *testing.T) {
	object := func(list []any) []byte { return merge.Encode(map[string]any{"disks": list}, false) }
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		h := []any{}
		for range w.count(6, "elements") {
			e := map[string]any{"path": rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path")}
			if w.chance(30, "size") {
				e["size"] = json.Number("1")
			}
			if w.chance(50, "typed") {
				e["type"] = rapid.SampledFrom([]string{"hdd", "ssd"}).Draw(t, "type")
			}
			if w.chance(15, "hide") {
				e["path"], e["hidden"] = "/c", true // it cannot be taken for one that shows
			}
			h = append(h, e)
		}
		b := visible(h)
		changes := diff(t, object(b), object(h)).Parts()
		modes := make([]merge.Mode, len(changes))
		for _, i := range changes.Choices() {
			modes[i] = merge.Never
			if rapid.Bool().Draw(t, "made") {
				modes[i] = merge.Unedited
			}
		}
		text, _, err := changes.Apply(object(b), testTree, noMaps, modes, false)
		if err != nil {
			t.Fatal(err)
		}
		got := merge.Decode(t, text).(map[string]any)["disks"].([]any)
		if diff := cmp.Diff(b, visible(got)); diff != "" {
			t.Fatalf("b %s\nh %s\nmodes %v of %s\ngot %s (-want +got):\n%s", object(b), object(h), modes, changes.Encode(), text, diff)
		}
	})
}

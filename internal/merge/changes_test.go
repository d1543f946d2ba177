package merge_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/test/expect"
)

// hashes writes hash(…) out, in a text of changes.
func hashes(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`hash\(.*?\)`).ReplaceAllStringFunc(text, func(call string) string {
		return `"` + merge.Hash([]byte(call[len("hash("):len(call)-1])) + `"`
	})
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ name, b, h, want string }{
		// Objects.
		{"nothing is stored for what is equal, however it is written",
			`{"a":1,"b":{"c":"<","d":[1, {"x":1,"y":2}]}}`, `{"b":{"d":[1,{"y":2,"x":1}],"c":"\u003c"},"a":1}`,
			`[]`},
		{"a member that B lacks is set",
			`{"spec":{}}`, `{"spec":{"protocol":"udp"}}`,
			`[{"path":["spec","protocol"],"value":"udp"}]`},
		{"a parent that B lacks is set whole",
			`{}`, `{"spec":{"a":{"b":1}}}`,
			`[{"path":["spec"],"value":{"a":{"b":1}}}]`},
		{"what H lacks is removed",
			`{"spec":{"size":"L"}}`, `{"spec":{}}`,
			`[{"path":["spec","size"],"was":hash("L")}]`},
		{"null, an empty list, an empty object and absence are four things",
			`{"a":null,"b":[],"c":null}`, `{"a":[],"b":{},"d":null}`,
			`[{"path":["a"],"value":[],"was":hash(null)},{"path":["b"],"value":{},"was":hash([])},{"path":["c"],"was":hash(null)},{"path":["d"],"value":null}]`},
		{"numbers are equal by their text",
			`{"a":1,"b":9007199254740992}`, `{"a":1.0,"b":9007199254740993}`,
			`[{"path":["a"],"value":1.0,"was":hash(1)},{"path":["b"],"value":9007199254740993,"was":hash(9007199254740992)}]`},
		{"of duplicate members the last counts",
			`{"a":1,"a":2}`, `{"a":2}`,
			`[]`},

		// Lists with keys.
		{"an element is told by its key",
			`{"toppings":[{"name":"ham"},{"name":"olive"}]}`, `{"toppings":[{"name":"ham"},{"name":"olive","grams":5}]}`,
			`[{"path":["toppings",{"key":{"name":"olive"}},"grams"],"value":5}]`},
		{"a key may have several members, and lack some",
			`{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}`, `{"ports":[{"port":80,"a":1},{"port":80,"protocol":"UDP","a":2}]}`,
			`[{"path":["ports",{"key":{"port":80,"protocol":null}},"a"],"value":1},{"path":["ports",{"key":{"port":80,"protocol":"UDP"}},"a"],"value":2}]`},
		{"a new element is set between its neighbours",
			`{"toppings":[{"name":"ham"},{"name":"olive"}]}`, `{"toppings":[{"name":"ham"},{"name":"basil"},{"name":"olive"}]}`,
			`[{"path":["toppings",{"key":{"name":"basil"}}],"value":{"name":"basil"},"after":{"key":{"name":"ham"}},"before":{"key":{"name":"olive"}}}]`},
		{"another order is stored from where it begins",
			`{"toppings":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"toppings":[{"name":"a"},{"name":"c"},{"name":"b"}]}`,
			`[{"path":["toppings"],"order":[{"key":{"name":"c"}},{"key":{"name":"b"}}],"from":[1,0]}]`},
		{"a key that two elements have",
			`{"toppings":[{"name":"a"},{"name":"a"}]}`, `{"toppings":[{"name":"a"},{"name":"a","x":1}]}`,
			`[{"path":["toppings"],"elements":[{"name":"a"},{"name":"a"}]},{"path":["toppings",{"at":1},"x"],"value":1}]`},
		{"a key that B has twice tells nothing of H either",
			`{"toppings":[{"name":"a"},{"name":"a"}]}`, `{"toppings":[{"name":"a"}]}`,
			`[{"path":["toppings"],"elements":[{"name":"a"},{"name":"a"}]},{"path":["toppings",{"at":1}],"was":hash({"name":"a"})}]`},
		{"a key that H has twice tells nothing of B either",
			`{"toppings":[{"name":"a","x":1}]}`, `{"toppings":[{"name":"a","x":1},{"name":"a","x":2}]}`,
			`[{"path":["toppings"],"elements":[{"name":"a","x":1}]},{"path":["toppings"],"insert":{"name":"a","x":2},"after":{"at":0}}]`},

		// Lists without keys.
		{"an element is told by what is in it",
			`{"list":["a","b"]}`, `{"list":["a","c"]}`,
			`[{"path":["list"],"elements":["a","b"]},{"path":["list",{"at":1}],"value":"c","was":hash("b")}]`},
		{"new elements come in order behind their neighbour",
			`{"list":["a"]}`, `{"list":["a","b","c"]}`,
			`[{"path":["list"],"elements":["a"]},{"path":["list"],"insert":"b","after":{"at":0}},{"path":["list"],"insert":"c","after":{"at":0}}]`},
		{"what B has a part of is the same element, wherever it stands",
			`{"list":[{"id":1},{"id":2}]}`, `{"list":[{"id":3},{"id":1,"x":1},{"id":2,"x":2}]}`,
			`[{"path":["list"],"elements":[{"id":1},{"id":2}]},{"path":["list"],"insert":{"id":3},"before":{"at":0}},{"path":["list",{"at":0},"x"],"value":1},{"path":["list",{"at":1},"x"],"value":2}]`},
		{"elements that share the most are the same, wherever they stand",
			`{"list":[{"id":1},{"id":2},{}]}`, `{"list":[{"id":2,"x":2},{"id":1,"x":1}]}`,
			`[{"path":["list"],"elements":[{"id":1},{"id":2},{}]},{"path":["list",{"at":2}],"was":hash({})},{"path":["list"],"order":[{"at":1},{"at":0}],"from":[1,0]},{"path":["list",{"at":1},"x"],"value":2},{"path":["list",{"at":0},"x"],"value":1}]`},
		{"a list that lost an element is the same, and another one is new",
			`{"list":[[1,2]]}`, `{"list":[[1],[3]]}`,
			`[{"path":["list"],"elements":[[1,2]]},{"path":["list",{"at":0},{"at":1}],"was":hash(2)},{"path":["list"],"insert":[3],"after":{"at":0}}]`},
		{"elements at one index of lists of one length are the same, if they share nothing with others",
			`{"list":[{"a":1},{"b":2}]}`, `{"list":[{"a":3},{"b":4}]}`,
			`[{"path":["list"],"elements":[{"a":1},{"b":2}]},{"path":["list",{"at":0},"a"],"value":3,"was":hash(1)},{"path":["list",{"at":1},"b"],"value":4,"was":hash(2)}]`},
		{"elements are not the same for their index alone in lists of other lengths, or at other indexes",
			`{"list":[{"id":1},{"id":2}]}`, `{"list":[{"id":2},{"id":3}]}`,
			`[{"path":["list"],"elements":[{"id":1},{"id":2}]},{"path":["list",{"at":0}],"was":hash({"id":1})},{"path":["list"],"insert":{"id":3},"after":{"at":1}}]`},
		{"lists in lists are looked into",
			`{"list":[[1,2]]}`, `{"list":[[1,2,3]]}`,
			`[{"path":["list"],"elements":[[1,2]]},{"path":["list",{"at":0}],"insert":3,"after":{"at":1}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := diff(t, []byte(c.b), []byte(c.h))
			if diff := cmp.Diff(hashes(t, c.want), string(changes.Encode())); diff != "" {
				t.Error(diff)
			}
			if got := apply(t, changes, []byte(c.b)); !cmp.Equal(merge.Decode(t, got), merge.Decode(t, []byte(c.h))) {
				t.Errorf("applied to B: %s", got)
			}
			parsed, err := merge.Parse(changes.Encode())
			if diff := cmp.Diff(string(changes.Encode()), string(parsed.Encode())); diff != "" || err != nil {
				t.Errorf("read again: %v %s", err, diff)
			}
		})
	}
}

func TestApply(t *testing.T) {
	for _, c := range []struct{ name, b, h, b2, want string }{
		// Objects.
		{"what B lacked is restored beside an edit, and other values keep their text",
			`{"spec":{"n":1}}`, `{"spec":{"n":1,"protocol":"udp"}}`,
			`{"z": 1.0, "spec":{ "n":2,"l":[1, 2] }, "a": {"\u0062" : 1e2}}`,
			`{"a":{"\u0062" : 1e2},"spec":{"l":[1, 2],"n":2,"protocol":"udp"},"z":1.0}`},
		{"a stale copy does not overwrite a fresh edit",
			`{"spec":{"size":"L"}}`, `{"spec":{"size":"XL"}}`,
			`{"spec":{"size":"S"}}`,
			`{"spec":{"size":"S"}}`},
		{"an unedited value is restored",
			`{"spec":{"size":"L"}}`, `{"spec":{"size":"XL"}}`,
			`{"spec":{"size":"\u004c","n":1}}`,
			`{"spec":{"n":1,"size":"XL"}}`},
		{"what H lacked is removed",
			`{"spec":{"size":"L","n":1}}`, `{"spec":{"n":1}}`,
			`{"spec":{"size":"L","n":2}}`,
			`{"spec":{"n":2}}`},
		{"what H lacked stays when the user edited it",
			`{"spec":{"size":"L"}}`, `{"spec":{}}`,
			`{"spec":{"size":"S"}}`,
			`{"spec":{"size":"S"}}`},
		{"an object at the top rises again, but only for what B had not in it",
			`{"spec":{"oven":{"heat":1},"n":1}}`, `{"spec":{"oven":{"heat":1,"fan":true},"n":2,"dough":{"rest":{}},"m":3}}`,
			`{}`,
			`{"spec":{"dough":{"rest":{}},"m":3}}`},
		{"but not if there is something else",
			`{"spec":{}}`, `{"spec":{"n":1}}`,
			`{"spec":null}`,
			`{"spec":null}`},
		{"an object that the user removed does not rise again with its extras",
			`{"spec":{"oven":{"heat":1}}}`, `{"spec":{"oven":{"heat":1,"fan":true}}}`,
			`{"spec":{}}`,
			`{"spec":{}}`},
		{"an object that the user made something else of stays so",
			`{"oven":{"heat":1},"list":[1]}`, `{"oven":{"heat":1,"fan":true},"list":[1,2]}`,
			`{"oven":[1],"list":null}`,
			`{"oven":[1],"list":null}`},
		{"what the user added is kept, and what it lacks is added",
			`{}`, `{"oven":{"heat":1,"deep":{"a":1,"b":[1]},"toppings":[{"name":"a","x":1},{"name":"b"}]}}`,
			`{"oven":{"heat":2,"deep":{"b":[2]},"toppings":[{"name":"c"},{"name":"a","x":2,"y":3}]}}`,
			`{"oven":{"deep":{"a":1,"b":[2,1]},"heat":2,"toppings":[{"name":"c"},{"name":"a","x":2,"y":3},{"name":"b"}]}}`},
		{"what the user added, of another type, is kept",
			`{}`, `{"oven":{"heat":1}}`,
			`{"oven":null}`,
			`{"oven":null}`},

		// Lists with keys.
		{"a removed element does not come back",
			`{"toppings":[{"name":"a"},{"name":"b"}]}`, `{"toppings":[{"name":"a","x":1},{"name":"b","x":2}]}`,
			`{"toppings":[{"name":"b"}]}`,
			`{"toppings":[{"name":"b","x":2}]}`},
		{"extras go with their element when it is moved, and when one is put in front",
			`{"toppings":[{"name":"a"},{"name":"b"}]}`, `{"toppings":[{"name":"a","x":1},{"name":"b","x":2}]}`,
			`{"toppings":[{"name":"new"},{"name":"b"},{"name":"a"}]}`,
			`{"toppings":[{"name":"new"},{"name":"b","x":2},{"name":"a","x":1}]}`},
		{"extras go to nobody when a key is there twice",
			`{"toppings":[{"name":"a"}]}`, `{"toppings":[{"name":"a","x":1}]}`,
			`{"toppings":[{"name":"a"},{"name":"a"}]}`,
			`{"toppings":[{"name":"a"},{"name":"a"}]}`},
		{"extras of a nested list go with their elements",
			`{"toppings":[{"name":"a","toppings":[{"name":"b"}]}]}`, `{"toppings":[{"name":"a","toppings":[{"name":"b","x":1}]}]}`,
			`{"toppings":[{"name":"b"},{"name":"a","toppings":[{"name":"a"},{"name":"b"}]}]}`,
			`{"toppings":[{"name":"b"},{"name":"a","toppings":[{"name":"a"},{"name":"b","x":1}]}]}`},
		{"a new element that the user has added as well is merged",
			`{"toppings":[]}`, `{"toppings":[{"name":"a","n":1,"x":1}]}`,
			`{"toppings":[{"name":"b"},{"name":"a","n":2}]}`,
			`{"toppings":[{"name":"b"},{"n":2,"name":"a","x":1}]}`},
		{"an element that H lacked stays when the user edited it",
			`{"toppings":[{"name":"a","x":1},{"name":"b"}]}`, `{"toppings":[{"name":"b"}]}`,
			`{"toppings":[{"name":"a","x":2},{"name":"b"}]}`,
			`{"toppings":[{"name":"a","x":2},{"name":"b"}]}`},

		// Lists without keys.
		{"extras go with the element that has kept its content",
			`{"list":[{"id":1},{"id":2}]}`, `{"list":[{"id":1,"x":1},{"id":2,"x":2}]}`,
			`{"list":[{"id":0},{"id":2},{"id":1}]}`,
			`{"list":[{"id":0},{"id":2,"x":2},{"id":1,"x":1}]}`},
		{"extras go with an element without a key that the user edited",
			`{"list":[{"id":"a","n":1},{"id":"b","n":1}]}`, `{"list":[{"id":"a","n":1,"x":1},{"id":"b","n":1,"x":2}]}`,
			`{"list":[{"id":"b","n":2},{"id":"new","n":1},{"id":"a","n":3}]}`,
			`{"list":[{"id":"b","n":2,"x":2},{"id":"new","n":1},{"id":"a","n":3,"x":1}]}`},
		{"extras stay where they are when an equal element is edited",
			`{"list":[{"n":"a"},{"n":"a"}]}`, `{"list":[{"n":"a","x":1},{"n":"a","x":2}]}`,
			`{"list":[{"n":"a","y":1},{"n":"a"}]}`,
			`{"list":[{"n":"a","x":1,"y":1},{"n":"a","x":2}]}`},
		{"extras stay where they are when an equal element is removed",
			`{"list":[{"n":"a"},{"n":"b"},{"n":"a"}]}`, `{"list":[{"n":"a","x":1},{"n":"b"},{"n":"a","x":2}]}`,
			`{"list":[{"n":"b"},{"n":"a"}]}`,
			`{"list":[{"n":"b"},{"n":"a","x":2}]}`},
		{"extras do not go to an element that takes the place of another",
			`{"list":[{"id":"a"},{"id":"b"}]}`, `{"list":[{"id":"a","x":1},{"id":"b","x":2}]}`,
			`{"list":[{"id":"c"},{"id":"b"}]}`,
			`{"list":[{"id":"c"},{"id":"b","x":2}]}`},
		{"extras do not go to one of two new elements that say the same",
			`{"list":[{"id":"a","n":1},{"id":"b","n":1}]}`, `{"list":[{"id":"a","n":1,"x":1},{"id":"b","n":1,"x":2}]}`,
			`{"list":[{"id":"a","n":1},{"id":"c"},{"id":"c","n":1}]}`,
			`{"list":[{"id":"a","n":1,"x":1},{"id":"c"},{"id":"c","n":1}]}`},
		{"extras go with an edited element of a list in a list",
			`{"list":[{"id":"a","l":[{"id":"b","n":1},{"id":"c","n":1}]}]}`, `{"list":[{"id":"a","l":[{"id":"b","n":1,"x":1},{"id":"c","n":1}]}]}`,
			`{"list":[{"id":"new"},{"id":"a","l":[{"id":"c","n":1},{"id":"b","n":2}]}]}`,
			`{"list":[{"id":"new"},{"id":"a","l":[{"id":"c","n":1},{"id":"b","n":2,"x":1}]}]}`},
		{"an element is found by what it was, and not by what a change made of it",
			`{"list":[{"id":1,"n":1},{"id":1}]}`, `{"list":[{"id":1},{"id":1,"x":2}]}`,
			`{"list":[{"id":1,"n":1},{"id":1}]}`,
			`{"list":[{"id":1},{"id":1,"x":2}]}`},

		// Where new elements go.
		{"behind the neighbour before",
			`{"list":["a","b"]}`, `{"list":["a","x","y","b"]}`,
			`{"list":["b","a","c"]}`,
			`{"list":["b","a","x","y","c"]}`},
		{"before the neighbour behind, if the other is gone",
			`{"list":["a","b"]}`, `{"list":["a","x","y","b"]}`,
			`{"list":["c","b"]}`,
			`{"list":["c","x","y","b"]}`},
		{"to the end, if both are gone",
			`{"list":["a","b"]}`, `{"list":["a","x","y","b"]}`,
			`{"list":["c"]}`,
			`{"list":["c","x","y"]}`},
		{"to the start, if there was none before",
			`{"list":["b"]}`, `{"list":["x","y","b"]}`,
			`{"list":["c"]}`,
			`{"list":["x","y","c"]}`},
		{"nowhere, if the list is gone",
			`{"list":["b"]}`, `{"list":["x","y","b"]}`,
			`{}`,
			`{}`},

		// Order.
		{"the order is restored, and what the user added stays behind its predecessor",
			`{"list":["a","b","c"]}`, `{"list":["c","b","a"]}`,
			`{"list":["0","a","1","b","c","2"]}`,
			`{"list":["0","c","2","b","a","1"]}`},
		{"a list of which no order is left keeps its text",
			`{"list":["a","b","c"]}`, `{"list":["a","c","b"]}`,
			`{"list":[ "a", "b" ]}`,
			`{"list":[ "a", "b" ]}`},
		{"an order that the user changed stays",
			`{"list":["a","b","c"]}`, `{"list":["c","b","a"]}`,
			`{"list":["b","a","c"]}`,
			`{"list":["b","a","c"]}`},
		{"order, new elements, removed ones and extras at once",
			`{"list":[{"id":1},{"id":2},{"id":3},{"id":4}]}`, `{"list":[{"id":3},{"id":0},{"id":1,"x":1}]}`,
			`{"list":[{"id":1},{"id":2},{"id":9},{"id":3},{"id":4}]}`,
			`{"list":[{"id":3},{"id":0},{"id":1,"x":1},{"id":9}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := diff(t, []byte(c.b), []byte(c.h))
			got := apply(t, changes, []byte(c.b2))
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s\nby %s", diff, changes.Encode())
			}
		})
	}
}

// Changes can be left out.
func TestApply_SomeChanges(t *testing.T) {
	b := []byte(`{"a":1,"b":2,"toppings":[{"name":"x"},{"name":"y"}]}`)
	h := []byte(`{"a":0,"toppings":[{"name":"y"},{"name":"z"},{"name":"x","n":1}],"c":3}`)
	want := []string{
		`{"a":0,"b":2,"toppings":[{"name":"x"},{"name":"y"}]}`,
		`{"a":1,"toppings":[{"name":"x"},{"name":"y"}]}`,
		`{"a":1,"b":2,"c":3,"toppings":[{"name":"x"},{"name":"y"}]}`,
		`{"a":1,"b":2,"toppings":[{"name":"y"},{"name":"x"}]}`,
		`{"a":1,"b":2,"toppings":[{"name":"x"},{"name":"y"},{"name":"z"}]}`,
		`{"a":1,"b":2,"toppings":[{"n":1,"name":"x"},{"name":"y"}]}`,
	}
	var got []string
	changes := diff(t, b, h)
	for i := range changes {
		got = append(got, string(apply(t, changes[i:i+1], b)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	odd := merge.Changes{changes[0], changes[2], changes[4]}
	if diff := cmp.Diff(`{"a":0,"b":2,"c":3,"toppings":[{"name":"x"},{"name":"y"},{"name":"z"}]}`, string(apply(t, odd, b))); diff != "" {
		t.Error(diff)
	}
}

// The result shares nothing with the inputs or with later results.
func TestApply_ResultSharesNothing(t *testing.T) {
	b, h := []byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":1,"c":[1]}}`)
	changes := diff(t, b, h)
	got := apply(t, changes, b)
	copy(h, strings.Repeat("x", len(h)))
	again := apply(t, changes, b)
	_ = append(got[:1], "xxxxxxxxxx"...)
	if want := `{"a":{"b":1,"c":[1]}}`; string(again) != want || string(b) != `{"a":{"b":1}}` {
		t.Errorf("got %s, b is %s", again, b)
	}
}

func TestChanges_ObjectsAreRequired(t *testing.T) {
	for _, text := range []string{``, `[]`, `1`, `{"a":}`, `{} {}`, `{"a":[}`} {
		if changes, err := merge.Diff([]byte(text), []byte(`{}`), nil); err == nil {
			t.Errorf("b %s: %s", text, changes.Encode())
		}
		if changes, err := merge.Diff([]byte(`{}`), []byte(text), nil); err == nil {
			t.Errorf("h %s: %s", text, changes.Encode())
		}
		if got, err := (merge.Changes{}).ApplyUnedited([]byte(text), nil); err == nil {
			t.Errorf("b2 %s: %s", text, got)
		}
	}
}

// Changes are found as deep as JSON may be.
func TestChanges_Deep(t *testing.T) {
	nest := func(open, leaf, end string) string {
		return `{"a":` + strings.Repeat(open, 4000) + leaf + strings.Repeat(end, 4000) + `}`
	}
	b := nest(`{"b":1,"a":[`, `{"x":1}`, `]}`)
	h := nest(`{"a":[`, `{"x":2}`, `],"b":1}`)
	changes := diff(t, []byte(b), []byte(h))
	if len(changes) != 2 || merge.PathLength(changes[1]) != merge.MaxPath || len(changes.Encode()) > 3*len(h) {
		t.Fatalf("%d changes", len(changes))
	}
	if got := apply(t, changes, []byte(b)); string(diff(t, got, []byte(h)).Encode()) != `[]` {
		t.Error("it is not H")
	}
}

// Merging ends where paths do.
func TestApply_MaxPath(t *testing.T) {
	nest := func(depth int, leaf string) []byte {
		return []byte(strings.Repeat(`{"a":`, depth) + leaf + strings.Repeat(`}`, depth))
	}
	for depth, want := range map[int]string{
		merge.MaxPath - 1: `{"x":1,"y":2}`,
		merge.MaxPath:     `{"x":1}`,
	} {
		changes := diff(t, []byte(`{}`), nest(depth, `{"y":2}`))
		got := apply(t, changes, nest(depth, `{"x":1}`))
		if diff := cmp.Diff(string(nest(depth, want)), string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

// Elements of a long list are found, though some are gone.
func TestDiff_LongList(t *testing.T) {
	var b, h []string
	for i := range 1000 {
		b = append(b, fmt.Sprintf(`{"id":%d}`, i))
		if i%500 >= 44 {
			h = append(h, fmt.Sprintf(`{"id":%d,"x":%d}`, i, i))
		}
	}
	changes := diff(t, []byte(`{"list":[`+strings.Join(b, ",")+`]}`), []byte(`{"list":[`+strings.Join(h, ",")+`]}`))
	for _, c := range changes {
		if bytes.Contains(merge.Changes{c}.Encode(), []byte(`"insert"`)) {
			t.Fatalf("not found: %s", merge.Changes{c}.Encode())
		}
	}
	if len(changes) != 1+len(b) {
		t.Errorf("%d changes", len(changes))
	}
}

// The API server writes HTML characters and line separators with escapes.
func TestEncode_ShortestForm(t *testing.T) {
	b := []byte(`{"l":[{"a":"\u0026"}]}`)
	h := []byte(`{"l":[ {"a":"\u0026", "b" : "\u003c\u003e\u2028\"\\\n\ud83c\udf55"}, {"n":1.0e5} ],"bad":"\ud83c \u003c"}`)
	want := `[{"path":["bad"],"value":"\ud83c \u003c"},` +
		`{"path":["l"],"elements":[{"a":"&"}]},{"path":["l",{"at":0},"b"],"value":"<>` + "\u2028" + `\"\\\n🍕"},{"path":["l"],"insert":{"n":1.0e5},"after":{"at":0}}]`
	changes := diff(t, b, h)
	if diff := cmp.Diff(want, string(changes.Encode())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parsed, err := merge.Parse(changes.Encode())
	expect.NoError(t, err)
	if got := apply(t, parsed, b); !merge.Equal(got, h) {
		t.Errorf("got %s", got)
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"what is not JSON", `[{]`, `changes: unexpected character ']' at offset 2`},
		{"what is no list", `{}`, `changes: not a JSON array`},
		{"what is no change", `[{"path":["a"],"value":1},1]`, `change 1: not an object`},
		{"an unknown field", `[{"path":["a"],"value":1,"Was":""}]`, `change 0: Was: no such field`},
		{"no path", `[{"value":1}]`, `change 0: path is missing`},
		{"an empty path", `[{"path":[],"value":1}]`, `change 0: path: is empty`},
		{"a path that is not an array", `[{"path":"a","value":1}]`, `change 0: path: not an array`},
		{"a path that begins in a list", `[{"path":[{"key":{"a":1}}],"value":1}]`, `change 0: path: begins with an element`},
		{"a path that is too long", `[{"path":["a"` + strings.Repeat(`,"a"`, 100) + `],"value":1}]`, `change 0: path: longer than 100`},
		{"a step that is a number", `[{"path":["a",1],"value":1}]`, `change 0: path: 1: no name and no element`},
		{"a step to nowhere", `[{"path":["a",{}],"value":1}]`, `change 0: path: 1: an element is identified by either key or at`},
		{"a step to two places", `[{"path":["a",{"key":{"a":1},"at":1}],"value":1}]`, `change 0: path: 1: an element is identified by either key or at`},
		{"a step with an unknown field", `[{"path":["a",{"name":"x"}],"value":1}]`, `change 0: path: 1: name: no such field`},
		{"a key without members", `[{"path":["a",{"key":{}}],"value":1}]`, `change 0: path: 1: key: not an object of scalars`},
		{"a key with a list", `[{"path":["a",{"key":{"b":[]}}],"value":1}]`, `change 0: path: 1: key: not an object of scalars`},
		{"a key that is a list", `[{"path":["a",{"key":["b"]}],"value":1}]`, `change 0: path: 1: key: not an object of scalars`},
		{"a short hash", `[{"path":["a"],"was":"AAAA"}]`, `change 0: was: not a hash`},
		{"a hash that is no string", `[{"path":["a"],"was":1}]`, `change 0: was: not a hash`},
		{"an odd number", `[{"path":["a",{"at":1.0}]}]`, `change 0: path: 1: at: not an index`},
		{"the version", `[{"path":["apiVersion"],"value":"v1"}]`, `change 0: path: apiVersion must not be changed`},
		{"the kind", `[{"path":["kind"],"value":"Pizza"}]`, `change 0: path: kind must not be changed`},
		{"all metadata", `[{"path":["metadata"],"value":{}}]`, `change 0: path: only labels and annotations of metadata may be changed`},
		{"the name", `[{"path":["metadata","name"],"value":"x"}]`, `change 0: path: only labels and annotations of metadata may be changed`},
		{"nothing to do", `[{"path":["a"]}]`, `change 0: expected value, insert, was or order`},
		{"two things to do", `[{"path":["a"],"insert":1,"value":1}]`, `change 0: value: not allowed with the other fields`},
		{"neighbours of a member", `[{"path":["a"],"value":1,"after":{"key":{"a":1}}}]`, `change 0: after: not allowed with the other fields`},
		{"a neighbour that is text", `[{"path":["a"],"insert":1,"after":"a"}]`, `change 0: after: not an element`},
		{"a value for an element that B had, without a hash", `[{"path":["a",{"at":0}],"value":1}]`, `change 0: was: required for an element that is identified by its index`},
		{"a new element of another key", `[{"path":["a",{"key":{"name":"x"}}],"value":{"name":"y"}}]`, `change 0: value: the key differs from the key in the path`},
		{"elements that are not a list", `[{"path":["a"],"elements":{}}]`, `change 0: elements: not an array`},
		{"elements and hashes", `[{"path":["a"],"elements":[],"hashes":[]}]`, `change 0: expected either elements or hashes`},
		{"elements with a value", `[{"path":["a"],"elements":[],"value":1}]`, `change 0: value: not allowed with the other fields`},
		{"an order of one", `[{"path":["a"],"order":[{"key":{"a":1}}],"from":[0]}]`, `change 0: order: needs two elements`},
		{"an order of members", `[{"path":["a"],"order":["b","c"],"from":[0,1]}]`, `change 0: order: 0: not an element`},
		{"an order from nothing", `[{"path":["a"],"order":[{"key":{"a":1}},{"key":{"a":2}}]}]`, `change 0: from: expected one index for each element of order`},
		{"a place twice", `[{"path":["a"],"order":[{"key":{"a":1}},{"key":{"a":2}}],"from":[1,1]}]`, `change 0: from: expected one index for each element of order`},
		{"a place before the first", `[{"path":["a"],"order":[{"key":{"a":1}},{"key":{"a":2}}],"from":[-1,0]}]`, `change 0: from: 0: not an index`},
		{"a place outside", `[{"path":["a"],"order":[{"key":{"a":1}},{"key":{"a":2}}],"from":[1,2]}]`, `change 0: from: expected one index for each element of order`},
		{"a value that is too deep", `[{"path":["a"],"value":` + strings.Repeat(`[`, 9_999) + strings.Repeat(`]`, 9_999) + `}]`, `changes: nested deeper than 10000 at offset 10021`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, err := merge.Parse([]byte(c.text))
			if err == nil {
				t.Fatalf("read as %s", changes.Encode())
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Apply refuses what is too deep in its place.
func TestApply_TooDeepInItsPlace(t *testing.T) {
	changes, err := merge.Parse([]byte(`[{"path":["a","b","c"],"value":` + strings.Repeat(`[`, 9_998) + strings.Repeat(`]`, 9_998) + `}]`))
	expect.NoError(t, err)
	if got, err := changes.ApplyUnedited([]byte(`{"a":{"b":{}}}`), nil); err == nil || !strings.Contains(err.Error(), "too deeply") {
		t.Errorf("got %.100s, %v", got, err)
	}
}

// Hostile changes leave an object.
// Diff does not make such changes, but they can be read.
func TestApply_HostileChanges(t *testing.T) {
	many := ""
	keySets := ""
	for i := range 8 {
		keySets += fmt.Sprintf(`{"path":["toppings",{"key":{"k%d":0}},"x"],"value":1},`, i)
	}
	for i := range 2 * 16 {
		many += fmt.Sprintf(`,"m%02d":%d`, i, i)
	}
	for _, c := range []struct{ name, changes, b2, want string }{
		{"two values for one place",
			`[{"path":["a"],"value":{"x":1}},{"path":["a"],"value":{"x":2,"y":3}}]`,
			`{}`, `{"a":{"x":1,"y":3}}`},
		{"a value in one that is replaced",
			`[{"path":["a"],"value":1,"was":hash({"l":[1]})},{"path":["a","b"],"value":2},{"path":["a","l"],"insert":2}]`,
			`{"a":{"l":[1]}}`, `{"a":1}`},
		{"a value in one that is removed",
			`[{"path":["a"],"was":hash({})},{"path":["a","b"],"value":2}]`,
			`{"a":{}}`, `{}`},
		{"a value removed and set",
			`[{"path":["a"],"was":hash(1)},{"path":["a"],"value":2}]`,
			`{"a":1}`, `{}`},
		{"a value removed and set among many",
			`[{"path":["a"],"was":hash(1)},{"path":["a"],"value":2}]`,
			`{"a":1` + many + `}`, `{` + many[1:] + `}`},
		{"one key twice in a value",
			`[{"path":["toppings"],"value":[{"name":"a"},{"name":"a","x":1}]}]`,
			`{"toppings":[]}`, `{"toppings":[{"name":"a","x":1}]}`},
		{"two orders",
			`[{"path":["l"],"elements":[1,2]},{"path":["l"],"order":[{"at":1},{"at":0}],"from":[1,0]},{"path":["l"],"order":[{"at":1},{"at":0}],"from":[1,0]}]`,
			`{"l":[1,2]}`, `{"l":[2,1]}`},
		{"an order with an element twice",
			`[{"path":["l"],"elements":[1,2]},{"path":["l"],"order":[{"at":0},{"at":0}],"from":[1,0]}]`,
			`{"l":[1,2]}`, `{"l":[1,2]}`},
		{"more sets of keys than a list can have",
			`[` + keySets + `{"path":["toppings",{"key":{"name":"a"}}],"value":{"name":"a"}}]`,
			`{"toppings":[]}`, `{"toppings":[]}`},
		{"more sets of keys than a list can have, and one to merge",
			`[` + keySets + `{"path":["toppings"],"value":[{"name":"a"}]}]`,
			`{"toppings":[]}`, `{"toppings":[]}`},
		{"an element by key in a list without keys",
			`[{"path":["l",{"key":{"name":"a"}},"x"],"value":1}]`,
			`{"l":[{"name":"a"}]}`, `{"l":[{"name":"a","x":1}]}`},
		{"two new elements of one key",
			`[{"path":["toppings",{"key":{"name":"a"}}],"value":{"name":"a"}},{"path":["toppings",{"key":{"name":"a"}}],"value":{"name":"a"}}]`,
			`{"toppings":[]}`, `{"toppings":[{"name":"a"}]}`},
		{"elements merged into a list that is put in order",
			`[{"path":["toppings"],"value":[{"name":"c"}]},{"path":["toppings"],"elements":[{"name":"a"},{"name":"b"}]},{"path":["toppings"],"order":[{"at":1},{"at":0}],"from":[1,0]}]`,
			`{"toppings":[{"name":"a"},{"name":"b"}]}`, `{"toppings":[{"name":"b"},{"name":"a"},{"name":"c"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, err := merge.Parse([]byte(hashes(t, c.changes)))
			expect.NoError(t, err)
			if diff := cmp.Diff(c.want, string(apply(t, changes, []byte(c.b2)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Without keys, elements are told by content.
func TestDiff_WithoutKeys(t *testing.T) {
	b, h := []byte(`{"l":[{"name":"a"}]}`), []byte(`{"l":[{"name":"a","x":1}]}`)
	changes, err := merge.Diff(b, h, nil)
	expect.NoError(t, err)
	if got, err := changes.ApplyUnedited(b, nil); string(got) != string(h) || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

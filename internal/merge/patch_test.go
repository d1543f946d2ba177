package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/crdkit/crdkit/test/expect"
)

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply does to raw what the API server does with a patch, with its library.
func apply(t failer, raw, patch []byte) []byte {
	t.Helper()
	if patch == nil {
		return raw
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("the API server cannot read the patch: %v\n%s", err, patch)
	}
	got, err := p.Apply(raw)
	if err != nil {
		t.Fatalf("the API server cannot apply the patch: %v\n%s\nto %s", err, patch, raw)
	}
	return got
}

// decode returns the JSON value, with numbers as text.
func decode(t failer, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// long writes out "…", which stands for so much text that a list is not better
// replaced whole.
func long(text string) []byte {
	return []byte(strings.ReplaceAll(text, "…", strings.Repeat(" and so on", 30)))
}

// patchCase is what the patch of three objects should be; "" for none.
type patchCase struct{ name, raw, before, after, want string }

func testPatches(t *testing.T, cases []patchCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			raw, before, after := long(c.raw), long(c.before), long(c.after)
			got, _, err := Patch(raw, before, after, nil, false, true)
			expect.NoError(t, err)
			if diff := cmp.Diff(string(long(c.want)), string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if (got == nil) != (c.want == "") {
				t.Errorf("got %#v for no patch", got)
			}
			apply(t, raw, got)
		})
	}
}

func TestPatch(t *testing.T) {
	testPatches(t, []patchCase{
		// Only what changed.
		{"nothing is changed, so there is no patch, however raw is written",
			`{"b": 1.0, "a":{"u":1}, "l":[ ]}`, `{"a":{},"b":1,"l":[],"status":{}}`, `{"a":{},"b":1,"l":[],"status":{}}`,
			``},
		{"a changed member is replaced",
			`{"spec":{"size":"L","u":1}}`, `{"spec":{"size":"L"}}`, `{"spec":{"size":"S"}}`,
			`[{"op":"replace","path":"/spec/size","value":"S"}]`},
		{"the empty status of the Go type is not added",
			`{"spec":{"size":"L"}}`, `{"spec":{"size":"L"},"status":{}}`, `{"spec":{"size":"S"},"status":{}}`,
			`[{"op":"replace","path":"/spec/size","value":"S"}]`},
		{"another spelling in before is not a change",
			`{"cpu":"0.5","n":1.0,"m":{"x":1e2,"y":1}}`, `{"cpu":"500m","n":1,"m":{"x":100,"y":1}}`, `{"cpu":"500m","n":1,"m":{"x":100,"y":2}}`,
			`[{"op":"replace","path":"/m/y","value":2}]`},
		{"an edit of a 64-bit integer is seen",
			`{"spec":{"id":9007199254740993}}`, `{"spec":{"id":9007199254740993}}`, `{"spec":{"id":9007199254740992}}`,
			`[{"op":"replace","path":"/spec/id","value":9007199254740992}]`},
		{"operations are in the order of names",
			`{"c":1,"a":1}`, `{"c":1,"a":1}`, `{"c":2,"b":[1,"x y"]}`,
			`[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":[1,"x y"]},{"op":"replace","path":"/c","value":2}]`},
		{"what raw has already is not set again",
			`{"size":"S"}`, `{}`, `{"size":"S"}`,
			``},

		// Null, absence and empty.
		{"a zero value that raw lacks is added when it changes",
			`{"spec":{}}`, `{"spec":{"n":0,"p":null}}`, `{"spec":{"n":1,"p":null}}`,
			`[{"op":"add","path":"/spec/n","value":1}]`},
		{"to remove what raw lacks is no operation",
			`{"a":1}`, `{"a":1,"p":null,"s":{"x":0}}`, `{"a":1,"s":{}}`,
			``},
		{"null becomes an empty object, and back",
			`{"a":null,"b":{"u":1}}`, `{"a":null,"b":{}}`, `{"a":{},"b":null}`,
			`[{"op":"replace","path":"/a","value":{}},{"op":"replace","path":"/b","value":null}]`},
		{"an empty list becomes null, and a null list empty",
			`{"a":[],"b":null}`, `{"a":[],"b":null}`, `{"a":null,"b":[]}`,
			`[{"op":"replace","path":"/a","value":null},{"op":"replace","path":"/b","value":[]}]`},
		{"a missing parent is added with what changed",
			`{"metadata":{}}`, `{"metadata":{},"spec":{"size":"","toppings":null}}`, `{"metadata":{},"spec":{"size":"","toppings":["ham"]}}`,
			`[{"op":"add","path":"/spec","value":{"toppings":["ham"]}}]`},
		{"a null parent is replaced",
			`{"spec":null}`, `{"spec":{"size":""}}`, `{"spec":{"size":"S"}}`,
			`[{"op":"replace","path":"/spec","value":{"size":"S"}}]`},
		{"a null parent stays null when what it lacks is removed",
			`{"spec":null}`, `{"spec":{"size":""}}`, `{"spec":{}}`,
			``},
		{"a null list is replaced",
			`{"l":null}`, `{"l":[]}`, `{"l":[1]}`,
			`[{"op":"replace","path":"/l","value":[1]}]`},
		{"an object that the Go type left out keeps its unknown members",
			`{"spec":{"u":1,"n":0}}`, `{}`, `{"spec":{"n":0,"m":1}}`,
			`[{"op":"add","path":"/spec/m","value":1}]`},
		{"an empty list that the Go type left out is replaced",
			`{"l":[]}`, `{}`, `{"l":[1,2]}`,
			`[{"op":"replace","path":"/l","value":[1,2]}]`},

		// Objects.
		{"an object made anew keeps the unknown members of what is on both sides",
			`{"spec":{"a":{"x":1,"u":1},"b":{"x":1,"u":2},"u":3}}`, `{"spec":{"a":{"x":1},"b":{"x":1}}}`, `{"spec":{"a":{"y":2},"c":{}}}`,
			`[{"op":"remove","path":"/spec/a/x"},{"op":"add","path":"/spec/a/y","value":2},{"op":"remove","path":"/spec/b"},{"op":"add","path":"/spec/c","value":{}}]`},
		{"a changed type is replaced whole",
			`{"a":{"u":1},"b":[{"u":1}],"c":"1"}`, `{"a":{},"b":[{}],"c":"1"}`, `{"a":[],"b":{},"c":1}`,
			`[{"op":"replace","path":"/a","value":[]},{"op":"replace","path":"/b","value":{}},{"op":"replace","path":"/c","value":1}]`},
		{"what raw has as another type is replaced whole",
			`{"a":"8080","b":"x=1"}`, `{"a":8080,"b":{"x":1}}`, `{"a":8081,"b":{"x":2}}`,
			`[{"op":"replace","path":"/a","value":8081},{"op":"replace","path":"/b","value":{"x":2}}]`},
		{"names are escaped in paths",
			`{"a/b":1,"m~n":1,"~1":1,"\"":1,"é\n":1}`, `{"a/b":1,"m~n":1,"~1":1,"\"":1,"é\n":1}`, `{"a/b":2,"m~n":2,"~1":2,"\"":2,"é\n":2}`,
			`[{"op":"replace","path":"/\"","value":2},{"op":"replace","path":"/a~1b","value":2},{"op":"replace","path":"/m~0n","value":2},{"op":"replace","path":"/~01","value":2},{"op":"replace","path":"/é\n","value":2}]`},
		{"names are compared decoded",
			`{"\u0061":1,"\u00e9":{"\ud83c\udf55":1}}`, `{"a":1,"é":{"🍕":1}}`, `{"a":2,"é":{"🍕":2}}`,
			`[{"op":"replace","path":"/a","value":2},{"op":"replace","path":"/é/🍕","value":2}]`},
		{"of duplicate members the last one counts",
			`{"a":{"x":1},"a":{"y":1}}`, `{"a":{"y":1}}`, `{"a":{"y":2}}`,
			`[{"op":"replace","path":"/a/y","value":2}]`},
		{"invalid UTF-8 is what the API server takes it for",
			"{\"\xff\":1}", "{\"\ufffd\":1}", "{\"\ufffd\":2}",
			"[{\"op\":\"replace\",\"path\":\"/\ufffd\",\"value\":2}]"},

		// Lists.
		{"an element put in front does not get what was unknown in the first",
			`{"l":[{"name":"a","u":1},{"name":"b"}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"new"},{"name":"a"},{"name":"b"}]}`,
			`[{"op":"add","path":"/l/0","value":{"name":"new"}}]`},
		{"an edited element keeps what is unknown in it",
			`{"l":[{"name":"a"},{"name":"b","n":1,"u":1},{"name":"c"}]}`, `{"l":[{"name":"a"},{"name":"b","n":1},{"name":"c"}]}`, `{"l":[{"name":"a"},{"name":"b","n":2},{"name":"c"}]}`,
			`[{"op":"replace","path":"/l/1/n","value":2}]`},
		{"an element of another key in the same place does not get it",
			`{"l":[{"name":"a","u":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"b"}]}`,
			`[{"op":"replace","path":"/l","value":[{"name":"b"}]}]`},
		{"without a key the one in the same place is the one edited",
			`{"l":[{"n":1,"u":1},{"n":2,"u":2},{"n":3,"u":"3…"}]}`, `{"l":[{"n":1},{"n":2},{"n":3}]}`, `{"l":[{"n":1},{"n":5},{"n":3}]}`,
			`[{"op":"replace","path":"/l/1/n","value":5}]`},
		{"without a key the most alike is the one edited",
			`{"l":[{"a":1,"b":1,"c":1,"u":1},{"a":2,"b":2,"c":2,"u":"2…"}]}`, `{"l":[{"a":1,"b":1,"c":1},{"a":2,"b":2,"c":2}]}`, `{"l":[{"a":2,"b":2,"c":3}]}`,
			`[{"op":"remove","path":"/l/0"},{"op":"replace","path":"/l/0/c","value":3}]`},
		{"a protocol is part of the key of a port",
			`{"l":[{"port":53,"protocol":"TCP","u":1},{"port":53,"protocol":"UDP","u":"2…"}]}`, `{"l":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}`, `{"l":[{"port":53,"protocol":"UDP","n":1}]}`,
			`[{"op":"remove","path":"/l/0"},{"op":"add","path":"/l/0/n","value":1}]`},
		{"one that is moved and edited too, between ones removed and added",
			`{"l":[{"name":"a","u":"1…"},{"name":"b"},{"name":"c","u":"2…"},{"name":"d"}]}`,
			`{"l":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`,
			`{"l":[{"name":"d"},{"name":"c"},{"name":"new"},{"name":"a","n":1}]}`,
			`[{"op":"replace","path":"/l","value":[{"name":"d"},{"name":"c","u":"2…"},{"name":"new"},{"n":1,"name":"a","u":"1…"}]}]`},
		{"elements are removed from the end",
			`{"l":["a","b","c","…"]}`, `{"l":["a","b","c","…"]}`, `{"l":["b","…"]}`,
			`[{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/0"}]`},
		{"equal elements are told apart by their neighbours",
			`{"l":[{"u":1},{"x":0},{"u":2},{"x":1}]}`, `{"l":[{},{"x":0},{},{"x":1}]}`, `{"l":[{"x":0},{},{"x":1}]}`,
			`[{"op":"remove","path":"/l/0"}]`},
		{"a list is replaced whole when that is shorter",
			`{"l":["a","b","c"]}`, `{"l":["a","b","c"]}`, `{"l":["c","b","a"]}`,
			`[{"op":"replace","path":"/l","value":["c","b","a"]}]`},
		{"and is made of raw's elements then",
			`{"l":[{"name":"a","u":1.0},{"name":"b" , "u":{"x":1e3}}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"c"},{"name":"b","n":1},{"name":"a","n":[]}]}`,
			`[{"op":"replace","path":"/l","value":[{"name":"c"},{"n":1,"name":"b","u":{"x":1e3}},{"n":[],"name":"a","u":1.0}]}]`},
		{"a list that raw has in another length is opaque",
			`{"l":[{"u":1},{"u":2}]}`, `{"l":[{"n":1}]}`, `{"l":[{"n":2}]}`,
			`[{"op":"replace","path":"/l","value":[{"n":2}]}]`},
		{"but untouched it stays",
			`{"a":1,"l":[{"u":1},{"u":2}]}`, `{"a":1,"l":[{"n":1}]}`, `{"a":2,"l":[{"n":1}]}`,
			`[{"op":"replace","path":"/a","value":2}]`},
		{"lists in lists",
			`{"l":[[{"name":"a","u":1},{"name":"b"}],[1]]}`, `{"l":[[{"name":"a"},{"name":"b"}],[1]]}`, `{"l":[[{"name":"b"}],[1]]}`,
			`[{"op":"remove","path":"/l/0/0"}]`},
		{"a null element becomes an object",
			`{"l":[null,{"u":1}]}`, `{"l":[null,{}]}`, `{"l":[{"n":1},{}]}`,
			`[{"op":"replace","path":"/l/0","value":{"n":1}}]`},
	})
}

// An insertion into a thousand is one operation.
func TestPatch_InsertionIntoAThousand(t *testing.T) {
	for _, at := range []int{0, 1, 500, 999, 1000} {
		after := thousand("quantity", func(l []string) []string { return slices.Insert(l, at, `{"name":"new"}`) })
		got, _, err := Patch(thousand("name", nil), thousand("quantity", nil), after, nil, false, true)
		want := fmt.Sprintf(`[{"op":"add","path":"/spec/toppings/%d","value":{"name":"new"}}]`, at)
		if err != nil || string(got) != want {
			t.Errorf("got %.300s, %v; want %s", got, err, want)
		}
	}
}

// Only objects can be patched.
func TestPatch_NoObject(t *testing.T) {
	const ok, other = `{"a":1}`, `{"a":2}`
	for _, bad := range []string{``, ` `, `null`, `[]`, `1`, `{`, `{"a"}`, `{"a":1]`, `{"a":[}`, `{} {}`, `{"a":1}}`, `{a:1}`, "{\"a\":\"\n\"}"} {
		for i, in := range [][3]string{{bad, ok, other}, {ok, bad, other}, {ok, other, bad}} {
			if got, _, err := Patch([]byte(in[0]), []byte(in[1]), []byte(in[2]), nil, false, true); err == nil {
				t.Errorf("%q as input %d gave %s", bad, i+1, got)
			} else if !strings.Contains(err.Error(), []string{"raw", "before", "after"}[i]) {
				t.Errorf("%q as input %d: the error does not say which: %v", bad, i+1, err)
			}
		}
	}
}

// The same input gives the same bytes.
func TestPatch_Deterministic(t *testing.T) {
	raw := `{"l":[{"u":1},{"u":2},{"u":3},{"a":1,"b":2,"c":3,"u":4},{"a":1,"b":2,"c":4,"u":5},{"k":1}]}`
	before := `{"l":[{},{},{},{"a":1,"b":2,"c":3},{"a":1,"b":2,"c":4},{"k":1}]}`
	after := `{"l":[{"k":1},{"a":1,"b":2,"c":5},{},{"x":1},{"a":1,"b":2,"c":6},{}]}`
	var want []byte
	for range 100 {
		got, _, err := Patch([]byte(raw), []byte(before), []byte(after), nil, false, true)
		expect.NoError(t, err)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got\n%s\nafter\n%s", got, want)
		}
	}
}

func TestPatch_KeepsInputs(t *testing.T) {
	in := []string{`{"c":1,"a":{"u":1},"l":[3,2,1]}`, `{"c":1,"a":{},"l":[3,2,1]}`, `{"c":2,"a":{"x":1},"l":[1,2,3]}`}
	var texts [3][]byte
	for i, s := range in {
		texts[i] = []byte(s + "slack")[:len(s)]
	}
	got, _, err := Patch(texts[0], texts[1], texts[2], nil, false, true)
	expect.NoError(t, err)
	for i := range got {
		got[i] = '!'
	}
	for i, s := range in {
		if got := string(texts[i][:len(s)+5]); got != s+"slack" {
			t.Errorf("input %d became %s", i+1, got)
		}
	}
}

// The bounds: no input may take long, nor make a patch out of proportion.

// Big lists end soon and lose nothing.
func TestPatch_BigLists(t *testing.T) {
	list := func(n int, unknown bool, order func(i int) int, element func(i int) string) []byte {
		var b bytes.Buffer
		for i := range n {
			e := element(order(i))
			if unknown {
				e = e[:len(e)-1] + fmt.Sprintf(`,"u":%d}`, order(i))
			}
			b.WriteString("," + e)
		}
		return slices.Concat([]byte(`{"l":[`), b.Bytes()[1:], []byte(`]}`))
	}
	elements := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i, i%3) }
	}
	for _, c := range []struct {
		name          string
		n             int
		before, after string
		order         func(i, n int) int
		certain       bool // which element is which
	}{
		{"reversed", 100_000, `{"name":"n%[1]d"}`, `{"name":"n%[1]d"}`, func(i, n int) int { return n - 1 - i }, true},
		{"shuffled", 10_000, `{"name":"n%[1]d"}`, `{"name":"n%[1]d"}`, func(i, n int) int { return i * 7919 % n }, true},
		{"turned", 10_000, `{"name":"n%[1]d"}`, `{"name":"n%[1]d"}`, func(i, n int) int { return (i + n/2) % n }, true},
		{"reversed and edited", 10_000, `{"name":"n%[1]d"}`, `{"name":"n%[1]d","x":1}`, func(i, n int) int { return n - 1 - i }, true},
		{"reversed without a key", 10_000, `{"v":%[1]d}`, `{"v":%[1]d}`, func(i, n int) int { return n - 1 - i }, true},
		{"edited without a key", 10_000, `{"v":%[1]d}`, `{"v":%[1]d,"x":1}`, func(i, n int) int { return i }, true},
		{"reversed and edited without a key", 10_000, `{"v":%[1]d}`, `{"v":%[1]d,"x":1}`, func(i, n int) int { return n - 1 - i }, false},
		{"repeated", 10_000, `{"v":%[2]d}`, `{"v":%[2]d}`, func(i, n int) int { return n - 1 - i }, false},
		{"other", 10_000, `{"name":"a%[1]d"}`, `{"name":"b%[1]d"}`, func(i, n int) int { return i }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			same := func(i int) int { return i }
			order := func(i int) int { return c.order(i, c.n) }
			raw, before := list(c.n, true, same, elements(c.before)), list(c.n, false, same, elements(c.before))
			after, want := list(c.n, false, order, elements(c.after)), list(c.n, true, order, elements(c.after))
			start := time.Now()
			got, _, err := Patch(raw, before, after, nil, false, true)
			expect.NoError(t, err)
			took := time.Since(start)
			t.Logf("took %v for %d bytes of patch", took, len(got))
			if took > 2*time.Minute {
				t.Errorf("took %v", took)
			}
			if len(got) > 2*len(raw) {
				t.Errorf("a patch of %d bytes for an object of %d", len(got), len(raw))
			}
			start = time.Now()
			patched := apply(t, raw, got)
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("the API server would take %v", took)
			}
			if c.certain && !equal(decode(t, patched), decode(t, want)) {
				t.Error("an element lost what is unknown in it")
			}
		})
	}
}

func TestPatch_DeepObjectsEndSoon(t *testing.T) {
	nested := func(depth int, open, bottom, end string) []byte {
		n := depth / (1 + strings.Count(open, "["))
		return []byte(strings.Repeat(open, n) + bottom + strings.Repeat(end, n))
	}
	for _, c := range []struct{ open, end string }{
		{`{"x":$,"a":`, `}`},
		{`{"a":`, `,"x":$}`},
		{`{"a":[{"b":$},`, `]}`},
		{`{"a":[`, `,[$,1,2],[$,1,3]]}`},
	} {
		object := func(depth int, v, bottom string) []byte {
			return nested(depth, strings.ReplaceAll(c.open, "$", v), bottom, strings.ReplaceAll(c.end, "$", v))
		}
		big := strings.Repeat("x", 1<<18)
		before, after := object(9_000, "1", `"`+big+`y"`), object(9_000, "2", `"`+big+`z"`)
		start := time.Now()
		got, _, err := Patch(before, before, after, nil, false, true)
		expect.NoError(t, err)
		took := time.Since(start)
		t.Logf("%s took %v for %d bytes of patch", c.open, took, len(got))
		if took > 2*time.Minute {
			t.Errorf("%s: took %v", c.open, took)
		}
		if len(got) > 2*len(after)+(1<<19) {
			t.Errorf("%s: a patch of %d bytes for an object of %d", c.open, len(got), len(after))
		}

		before, after = object(1_200, "1", "1"), object(1_200, "2", "1")
		got, _, err = Patch(before, before, after, nil, false, true)
		expect.NoError(t, err)
		if !equal(decode(t, apply(t, before, got)), decode(t, after)) {
			t.Errorf("%s: what the patch makes is not what was made", c.open)
		}
	}
}

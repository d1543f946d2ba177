package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/test/expect"
)

func members(object string) (names, values, texts []string, err error) {
	for m, err := range rawjson.Members([]byte(object)) {
		if err != nil {
			return names, values, texts, err
		}
		names = append(names, string(m.Name))
		values = append(values, string(m.Value))
		texts = append(texts, string(m.Text))
	}
	return names, values, texts, nil
}

func TestMembers_KeepTheirExactText(t *testing.T) {
	names, values, texts, err := members(" { \"a\" : 1.0 ,\"b\\n\":{ \"x\" : [1 , 2] }, \"\":null,\"a\":9007199254740993} ")
	expect.NoError(t, err)
	want := [][]string{
		{"a", "b\n", "", "a"},
		{"1.0", `{ "x" : [1 , 2] }`, "null", "9007199254740993"},
		{`"a" : 1.0`, `"b\n":{ "x" : [1 , 2] }`, `"":null`, `"a":9007199254740993`},
	}
	if diff := cmp.Diff(want, [][]string{names, values, texts}); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestMembers_NoObject(t *testing.T) {
	for text, want := range map[string]string{
		``:               "unexpected EOF",
		`{"a":1`:         "unexpected EOF",
		`{"a":{"b":`:     "unexpected EOF",
		`[]`:             "expected object, got array",
		`null`:           "expected object, got null",
		`{} {}`:          "unexpected data after the value",
		`{"a":1}x`:       "unexpected data after the value",
		`{a:1}`:          "unexpected character 'a'",
		`{"a" 1}`:        "unexpected character '1'",
		"{\"a\":\"\n\"}": `unexpected character '\n'`,
	} {
		if _, _, _, err := members(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
	if _, _, _, err := members(`{"a":`); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected EOF", err)
	}
}

// Set replaces, adds and removes one member.
func TestSet(t *testing.T) {
	for _, c := range []struct{ object, name, value, want string }{
		{`{}`, "a", "1", `{"a":1}`},
		{`{"a": 1.0, "b":2}`, "b", "[3]", `{"a": 1.0,"b":[3]}`},
		{`{"a":1, "b" : 2,"c":3}`, "b", "", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"a":3}`, "a", "4", `{"a":4,"b":2}`},
		{`{"a":1}`, "a", "", `{}`},
		{`{"a":1}`, "a\"\n", "null", `{"a":1,"a\"\n":null}`},
	} {
		var value []byte
		if c.value != "" {
			value = []byte(c.value)
		}
		got, err := rawjson.Set([]byte(c.object), c.name, value)
		if err != nil || string(got) != c.want {
			t.Errorf("Set(%s, %q, %s) = %s, %v; want %s", c.object, c.name, c.value, got, err, c.want)
		}
	}
	if _, err := rawjson.Set([]byte(`[1]`), "a", nil); err == nil {
		t.Error("an array was taken for an object")
	}
}

// Strings survive quoting.
func TestQuote(t *testing.T) {
	for _, s := range []string{"", "plain", "\"\\/\b\n\x00", "Zürich 🍕", "\u2028"} {
		if got, ok := rawjson.String(rawjson.Quote(s)); !ok || got != s {
			t.Errorf("%q came back as %q, %v", s, got, ok)
		}
	}
	for _, v := range []string{"", "1", "null", "{}", `"`} {
		if s, ok := rawjson.String([]byte(v)); ok {
			t.Errorf("%s was taken for the string %q", v, s)
		}
	}
}

// FuzzMembers checks that whatever is accepted is cut without a gap, and that
// encoding/json agrees about what it holds.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,"b":[{"c":null}]}`, `{"a":1,"a":2}`, `{"\u0061":"\ud83c"}`, `[1]`, `{"a":`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var all [][]byte
		last := map[string]string{}
		for m, err := range rawjson.Members(text) {
			if err != nil {
				return
			}
			all = append(all, m.Text)
			last[string(m.Name)] = string(m.Value)
		}
		again := append(append([]byte{'{'}, bytes.Join(all, []byte{','})...), '}')
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			// encoding/json is stricter in a few corners, such as nesting depth.
			return
		}
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatalf("%q cut and joined is not JSON: %q: %v", text, again, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q cut and joined differs (-want +got):\n%s", text, diff)
		}
		for name, value := range last {
			set, err := rawjson.Set(text, name, []byte(value))
			expect.NoError(t, err)
			if err := json.Unmarshal(set, &got); err != nil {
				t.Fatalf("%q after Set is not JSON: %q: %v", text, set, err)
			}
		}
	})
}

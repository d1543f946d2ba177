package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outlineTexts are JSON values, and texts that are nearly such.
var outlineTexts = []string{
	``, ` `, `null`, `tru`, `"`, `""`, `"a`, `"12345678"`, `"123456789\"0\u00e9\n"`, `"\x"`, "\"\x1f\"", "\"12345678\x00\"", "\"\xff\"",
	`0`, `00`, `-`, `-0.5e+3`, `1,`, `9`, `12`, `1.`, `{}`, `{ }`, `[]`, `[ ]`, `{]`, `[}`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{1:1}`, `{"a" : 1 , "b":[ ]}`,
	`[1,2,30]`, `[1,]`, `[,1]`, `[1 2]`, `[{"name":"topping-0001","quantity":2},{"name":"topping-0002","quantity":3}]`, `{"a":{"b":[{},[[]],{"c":"}"}]},"d":"["}`, `[{"a":[}]`, `{} {}`,
}

// An outline is taken of what is JSON.
func TestOutline(t *testing.T) {
	cases := slices.Clone(outlineTexts)
	for _, depth := range []int{64, 65, 10_000} {
		deep := strings.Repeat(`[{"a":`, depth/2) + "1" + strings.Repeat("}]", depth/2)
		cases = append(cases, deep, deep[:len(deep)-1], strings.Replace(deep, "}", "]", 1))
	}
	for _, text := range cases {
		checkOutline(t, []byte(text))
	}
	c := NewCursor([]byte(strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)))
	if c.Enter('['); c.Next('[') {
		if c.Outline(nil); c.Err() == nil {
			t.Error("a value nested 10,001 deep is accepted")
		}
	}
}

// checkOutline compares with encoding/json, and reads the text by its outline.
func checkOutline(t *testing.T, text []byte) {
	t.Helper()
	c := NewCursor(text)
	value, spans := c.Outline([]Span{{7, 7, 7}})
	if got, want := c.End() == nil, json.Valid(text); got != want {
		t.Fatalf("%.200q: got %v, encoding/json says %v", text, got, want)
	}
	if !json.Valid(text) {
		return
	}
	if string(value) != string(bytes.Trim(text, " \t\r\n")) {
		t.Fatalf("%.200q: got %.200q", text, value)
	}
	if len(value) > 1<<14 {
		return // to read it level by level with Value would take long
	}
	var read func(value []byte, spans []Span)
	read = func(value []byte, spans []Span) {
		if value[0] != '{' && value[0] != '[' {
			if len(spans) > 0 {
				t.Fatalf("%.200q: %.200q has spans", text, value)
			}
			return
		}
		if spans[0].Size != len(value) || spans[0].Count != len(spans) {
			t.Fatalf("%.200q: the span of %.200q is %v", text, value, spans[0])
		}
		spans = spans[1:]
		by, plain := NewCursor(value), NewCursor(value)
		by.Enter(value[0])
		for plain.Enter(value[0]); plain.Next(value[0]); {
			if !by.Next(value[0]) || string(by.NameText()) != string(plain.NameText()) && value[0] == '{' {
				t.Fatalf("%.200q: there is less in %.200q", text, value)
			}
			want := plain.Value()
			if begin := by.Begins(); begin != '{' && begin != '[' {
				by.Value()
				continue
			}
			if got := by.Skip(spans[0].Size); !bytes.Equal(got, want) {
				t.Fatalf("%.200q: got %.200q, want %.200q", text, got, want)
			}
			read(want, spans[:spans[0].Count])
			spans = spans[spans[0].Count:]
		}
		if by.Next(value[0]) || len(spans) > 0 {
			t.Fatalf("%.200q: there is more in %.200q", text, value)
		}
	}
	read(value, spans[1:])
	checkAgain(t, c.Again(bytes.IndexByte(text, value[0]), spans[1:]), value)
}

// checkAgain reads a value again by an outline: it enters every second object or array, and passes over the others.
func checkAgain(t *testing.T, again Cursor, value []byte) {
	t.Helper()
	nested := 0
	var read func(plain *Cursor)
	read = func(plain *Cursor) {
		open := plain.Begins()
		nests := open == '{' || open == '['
		if nests {
			nested++
		}
		if !nests || nested%2 == 0 {
			if want, got := plain.Value(), again.Value(); !bytes.Equal(got, want) || got == nil {
				t.Fatalf("%.200q: read again, %.200q is %.200q", value, want, got)
			}
			return
		}
		again.Enter(open)
		for plain.Enter(open); plain.Next(open); {
			if !again.Next(open) || string(again.Name()) != string(plain.Name()) {
				t.Fatalf("%.200q: read again, there is less than %.200q", value, plain.Rest())
			}
			read(plain)
		}
		if again.Next(open) {
			t.Fatalf("%.200q: read again, there is more", value)
		}
	}
	plain := NewCursor(value)
	read(&plain)
	if err := again.End(); err != nil {
		t.Fatalf("%.200q: read again: %v", value, err)
	}
}

// Large values are outlined that are nested in at most two others.
func TestOutlineOfLarge(t *testing.T) {
	long := `"` + strings.Repeat("a", 300) + `"`
	deep := fmt.Sprintf(`{"c":[[%s]]}`, long)
	text := fmt.Sprintf(`{"small":{"a":[1]},"metadata":{"managedFields":[%s,{"fieldsV1":%s}],"name":"a"},"spec":%s,"string":%s}`, deep, deep, deep, long)
	c := NewCursor([]byte(text))
	value, spans := c.OutlineOfLarge([]Span{{7, 7, 7}})
	if string(value) != text || c.End() != nil {
		t.Errorf("got %s, %v", value, c.End())
	}
	var got []string
	for _, s := range spans[1:] {
		got = append(got, text[s.Begin:s.Begin+s.Size])
	}
	managed := fmt.Sprintf(`[%s,{"fieldsV1":%s}]`, deep, deep)
	want := []string{
		text,
		`{"managedFields":` + managed + `,"name":"a"}`,
		managed,
		deep,
		fmt.Sprintf("[[%s]]", long),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	checkAgain(t, c.Again(0, spans[1:]), value)

	again := NewCursor([]byte("[" + text + "," + deep + "]"))
	again.Enter('[')
	again.Next('[')
	begin := again.Offset()
	_, spans = again.OutlineOfLarge(nil)
	again.Next('[')
	again.Value()
	two := again.Again(begin, spans)
	if first := two.Value(); string(first) != text {
		t.Errorf("the first element, read again, is %s", first)
	}
	if !two.Next('[') || string(two.Value()) != deep || two.Next('[') {
		t.Errorf("the second element, read again, differs, or there is a third: %v", two.Err())
	}
}

// FuzzOutline compares with encoding/json and with Value.
func FuzzOutline(f *testing.F) {
	for _, s := range outlineTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(checkOutline)
}

// Only a value of the same text is followed.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		text, value string
		want        bool
	}{
		{`{"a":1}`, `{"a":1}`, true},
		{`[[1],2]`, `[[1],2]`, true},
		{`"a"`, `"a"`, true},
		{`"a"`, `"b"`, false},
		{`{"a":1`, `{"a":1}`, false},
		{`12`, `1`, false}, // it goes on
		{`1`, `1`, false},
		{`null`, `null`, false},
		{`{}`, ``, false},
	} {
		cursor := NewCursor([]byte(c.text))
		if got := cursor.Follow([]byte(c.value)); got != c.want {
			t.Errorf("%s follows %s: %v", c.text, c.value, got)
		} else if want := map[bool]string{true: "", false: c.text}[c.want]; string(cursor.Rest()) != want {
			t.Errorf("%s after %s: the rest is %s", c.text, c.value, cursor.Rest())
		}
	}
}

func TestCursor_StaysAfterError(t *testing.T) {
	c := NewCursor([]byte(`[x,{}]`))
	c.Enter('[')
	c.Next('[')
	if value, spans := c.Outline(nil); value != nil || spans != nil || c.Err() == nil {
		t.Errorf("got %s, %v, %v", value, spans, c.Err())
	}
	at := c.Offset()
	value, spans := c.Outline(nil)
	if c.Follow([]byte("{}")) || c.Skip(2) != nil || value != nil || spans != nil || c.Offset() != at {
		t.Errorf("it went on to offset %d", c.Offset())
	}
}

// The text of a name is as it was written.
func TestNameText(t *testing.T) {
	var got []string
	c := NewCursor([]byte(`{"a" : 1, "":2,"\u0061\"":3}`))
	for c.Enter('{'); c.Next('{'); c.Value() {
		got = append(got, string(c.NameText()))
	}
	if diff := cmp.Diff([]string{`"a"`, `""`, `"\u0061\""`}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// listText is a list of 1,000 small objects.
func listText() []byte {
	var b bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&b, `,{"name":"topping-%04d","quantity":%d}`, i, i%3+1)
	}
	return append(append([]byte{'['}, b.Bytes()[1:]...), ']')
}

func BenchmarkOutline(b *testing.B) {
	text := listText()
	b.Run("outline", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		var spans []Span
		for b.Loop() {
			c := NewCursor(text)
			if _, spans = c.Outline(spans[:0]); c.Err() != nil {
				b.Fatal(c.Err())
			}
		}
	})
	b.Run("skip", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !valid(text) {
				b.Fatal("not valid")
			}
		}
	})
}

package rawjson_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// FuzzPlain checks that what Plain takes is what Value and String take, and that otherwise
// the cursor stays.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{`"plain"`, `"eight by"`, `"more than eight"`, `"a\"b"`, "\"\n\"", `"é"`, `"`, `""`, `0`, `null`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, sure := rawjson.NewCursor(text), rawjson.NewCursor(text)
		before, value := c.Offset(), sure.Value()
		if plain, ok := c.Plain(); ok {
			want, isString := rawjson.String(value)
			if !isString || string(plain) != want || c.Offset() != sure.Offset() {
				t.Errorf("%q: got %q up to %d, want %q up to %d", text, plain, c.Offset(), want, sure.Offset())
			}
			return
		}
		if c.Offset() != before || c.Err() != nil {
			t.Errorf("%q: the cursor went from %d to %d: %v", text, before, c.Offset(), c.Err())
		}
	})
}

func TestPlain_TakesWhatIsUsual(t *testing.T) {
	c := rawjson.NewCursor([]byte(`["","a","mozzarella and tomato"]`))
	c.Enter('[')
	for _, want := range []string{"", "a", "mozzarella and tomato"} {
		if got, ok := []byte(nil), false; c.Next('[') {
			if got, ok = c.Plain(); !ok || string(got) != want {
				t.Errorf("got %q, %v; want %q", got, ok, want)
			}
		}
	}
	if c.Next('[') || c.End() != nil {
		t.Errorf("%q is left: %v", c.Rest(), c.Err())
	}
}

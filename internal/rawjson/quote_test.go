package rawjson_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// FuzzQuote checks that strings are quoted as package jsontext does it.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "eight by", "more than eight", "a\"b\\c\n\r\t\b\f", "12345678\"", "\"12345678", "1234567\"9", "\x00", "\x7f", "é", "\"\"é", "\xff", "\u2028", "{\"a\":\"b\"}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := jsontext.AppendQuote([]byte("before"), s)
		if got := rawjson.AppendQuote([]byte("before"), s); string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}

package logtext_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/logtext"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		`Pizza "a\b"`:           `Pizza "a\b"`,
		"müsli … 🍕":             "müsli … 🍕",
		"a\nI1123 forged\r\tb":  `a\nI1123 forged\r\tb`,
		"\x1b[31mred\x00\x7f":   `\x1b[31mred\x00\x7f`,
		"\u2028line\u202eright": `\u2028line\u202eright`,
		"bad \xff byte":         "bad \ufffd byte",
	} {
		if diff := cmp.Diff(want, logtext.Text(in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	for _, c := range []string{"x", "ü", "\n", "\x1b", "🍕", "\xff", "\x80"} {
		long := "a" + strings.Repeat(c, 200_000/len(c))
		if got := logtext.Text(long); len(got) > 10<<10 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x1b") || !strings.Contains(got, "bytes)") {
			t.Errorf("%q: got %d bytes, %.100q", c, len(got), got)
		}
	}
}

func TestError_WrapsError(t *testing.T) {
	err := logtext.Error(errors.Join(io.EOF, errors.New("second")))
	if err.Error() != `EOF\nsecond` || !errors.Is(err, io.EOF) {
		t.Errorf("got %q", err)
	}
}

func TestGeneral_WithoutValues(t *testing.T) {
	const want = `spec.items[].name: Invalid value: …: must have at most … characters`
	for _, message := range []string{
		`spec.items[0].name: Invalid value: "a \"b\"": must have at most 63 characters`,
		`spec.items[12].name: Invalid value: "": must have at most 1.5 characters`,
	} {
		if got := logtext.General(message); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Package logtext makes strings of clients and of authors' functions fit for a log line: names, error
// messages and panic values. Loggers quote some values, and write others as they are. It also makes error messages
// with one cause equal.
package logtext

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxText is the size of a text from which on it is cut off. Names of objects have up to 253 bytes.
const maxText = 2 << 10

// Text returns s on one line: characters that cannot be printed are escaped as in Go, such as \n and
// \x1b, and what exceeds 2 KiB is cut off.
func Text(s string) string {
	plain := len(s) <= maxText
	for i := 0; plain && i < len(s); i++ {
		plain = ' ' <= s[i] && s[i] <= '~'
	}
	if plain {
		return s
	}
	var b strings.Builder
	for _, r := range Cut(s, maxText) {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Cut returns the first size bytes of s, or a few less to end with a character, and how long s is; or s
// if it is not longer.
func Cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:size], len(s))
}

// Error returns err with the message as [Text] has it. It wraps err.
func Error(err error) error { return failure{err} }

type failure struct{ error }

func (e failure) Error() string { return Text(e.error.Error()) }
func (e failure) Unwrap() error { return e.error }

var (
	index = regexp.MustCompile(`\[[^]]*\]`)
	value = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\b\d+(?:\.\d+)?\b`)
)

// AnyIndex returns a path with [] in place of each index.
func AnyIndex(path string) string { return index.ReplaceAllString(path, "[]") }

// General returns the message of an error without indexes, quoted values and numbers, so that it is the same for all
// objects with one cause.
func General(message string) string { return value.ReplaceAllString(AnyIndex(message), "…") }

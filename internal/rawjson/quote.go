package rawjson

import (
	"math/bits"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Quote returns s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) []byte { return AppendQuote(nil, s) }

// AppendQuote appends s to b as [Quote] returns it.
func AppendQuote(b []byte, s string) []byte {
	begin, n := len(b), plain(s)
	if n == len(s) {
		b = slices.Grow(b, n+2)[:begin+n+2]
		b[begin], b[begin+n+1] = '"', '"'
		copy(b[begin+1:], s)
		return b
	}
	b = append(b, '"')
	for rest := s; ; n = plain(rest) {
		b = append(b, rest[:n]...)
		if n == len(rest) {
			return append(b, '"')
		}
		c := escaped[rest[n]]
		if c == 0 { // no ASCII, or a rare control character
			b, _ = jsontext.AppendQuote(b[:begin], s) // the error only reports the replacement
			return b
		}
		b = append(b, '\\', c)
		rest = rest[n+1:]
	}
}

// escaped is what stands behind a backslash for a character.
var escaped = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// plain returns how many bytes at the beginning of s are ASCII that stands for itself
// between quotation marks.
func plain(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if x := notPlain(s[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	if i < len(s) && len(s) >= 8 { // the last eight, some of them again
		i = len(s) - 8
		return i + bits.TrailingZeros64(notPlain(s[i:]))/8 // of 0, there are 64
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] < 0x80 {
		i++
	}
	return i
}

// notPlain marks, as special does, which of the first eight bytes of s are not plain.
func notPlain(s string) uint64 {
	const highBits = 0x8080808080808080
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56 // one load
	return special(x) | x&highBits
}

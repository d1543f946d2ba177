package rawjson

import "github.com/go-json-experiment/json/jsontext"

// Quote returns s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) []byte { return AppendQuote(nil, s) }

// AppendQuote appends s to b as [Quote] returns it.
func AppendQuote(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	b, _ = jsontext.AppendQuote(b, s) // the error only reports the replacement
	return b
}

// plain reports whether s is ASCII that stands for itself between quotation marks.
func plain(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56 // one load
		if special(x)|x&highBits != 0 {
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Plain passes over the string that begins here, if it is ASCII without escapes, and
// returns what is between its quotation marks. Otherwise ok is false, and the cursor
// stays: there is no string, or one for [Cursor.AppendString].
func (c *Cursor) Plain() (text []byte, ok bool) {
	if c.Begins() != '"' {
		return nil, false
	}
	b, begin := c.text, c.at+1
	i := begin
	for i+8 <= len(b) { // see skipString
		x := binary.LittleEndian.Uint64(b[i:])
		if s := special(x) | x&highBits; s != 0 {
			i += bits.TrailingZeros64(s) / 8
			break
		}
		i += 8
	}
	for i < len(b) { // the first that is special, or the last seven bytes
		switch got := b[i]; {
		case got == '"':
			c.at = i + 1
			return b[begin:i:i], true
		case got < ' ' || got == '\\' || got >= 0x80:
			return nil, false
		}
		i++
	}
	return nil, false
}

// AppendString passes over the string that begins here and appends it to dst, decoded.
// It does in one pass what Value and [String] do in two. If the value is not a string, it is
// passed over, and ok is false.
func (c *Cursor) AppendString(dst []byte) (_ []byte, ok bool) {
	if c.Begins() != '"' {
		c.Value()
		return dst, false
	}
	var err error
	if dst, c.at, err = appendString(dst, c.text, c.at); err != nil {
		c.err = err
	}
	return dst, err == nil
}

// appendString appends the string whose quotation mark is at i, decoded, and returns the
// offset behind it. Invalid Unicode becomes U+FFFD.
func appendString(dst, b []byte, i int) ([]byte, int, error) {
	start, begin := i, len(dst)
	var seen uint64 // the bits of all bytes so far, and of some more
	i++
	for {
		for i+8 <= len(b) { // see skipString
			x := binary.LittleEndian.Uint64(b[i:])
			seen |= x
			dst = binary.LittleEndian.AppendUint64(dst, x)
			if s := special(x); s != 0 {
				n := bits.TrailingZeros64(s) / 8
				dst = dst[:len(dst)-8+n]
				i += n
				break
			}
			i += 8
		}
		if i >= len(b) || b[i] < ' ' {
			return dst[:begin], i, unexpected(b, i)
		}
		switch c := b[i]; c {
		case '"':
			if seen&highBits != 0 && !utf8.Valid(dst[begin:]) {
				dst, _ = jsontext.AppendUnquote(dst[:begin], b[start:i+1])
			}
			return dst, i + 1, nil
		case '\\':
			plain := byte(0)
			if i+1 < len(b) {
				plain = unescaped[b[i+1]]
			}
			if plain == 0 { // \u, which is rare, or an error
				end, err := skipString(b, i)
				if err != nil {
					return dst[:begin], end, err
				}
				dst, _ = jsontext.AppendUnquote(dst[:begin], b[start:end])
				return dst, end, nil
			}
			dst = append(dst, plain)
			i += 2
		default: // in the last seven bytes
			seen |= uint64(c)
			dst = append(dst, c)
			i++
		}
	}
}

// highBits are set in bytes that are not ASCII.
const highBits = 0x8080808080808080

// unescaped is what stands for a character behind a backslash.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

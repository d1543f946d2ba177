package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Plain passes over the string that begins here, if it is ASCII without escapes, and
// returns what is between its quotation marks. Otherwise ok is false, and the cursor
// stays: there is no string, or one for [Cursor.AppendString].
func (c *Cursor) Plain() (text []byte, ok bool) {
	if c.Begins() != '"' {
		return nil, false
	}
	const highBits = 0x8080808080808080
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

// Int passes over the integer that begins here, if it has at most 18 digits, and returns
// it. Otherwise ok is false, and the cursor stays.
func (c *Cursor) Int() (n int64, ok bool) {
	if c.err != nil {
		return 0, false
	}
	b, i := c.text, c.at
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	begin := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		n = 10*n + int64(b[i]-'0') // what has too many digits may overflow
		i++
	}
	digits := i - begin
	if digits == 0 || digits > 18 || digits > 1 && b[begin] == '0' || i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		return 0, false
	}
	c.at = i
	if negative {
		n = -n
	}
	return n, true
}

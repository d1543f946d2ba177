package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"strings"
)

// maxDepth is how deeply a text may be nested, as in encoding/json.
const maxDepth = 10_000

// IsNestedIn reports whether a JSON value can be nested in so many levels, and still be read.
func IsNestedIn(text []byte, levels int) bool {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= maxDepth-levels {
		return true
	}
	_, err := skipValue(text, 0, maxDepth-levels)
	return err == nil
}

// skipSpace returns the offset of the first byte from i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset after the string of which the rest begins at i.
func skipString(b []byte, i int) (int, error) {
	for {
		for i+8 <= len(b) {
			if s := special(binary.LittleEndian.Uint64(b[i:])); s != 0 {
				i += bits.TrailingZeros64(s) / 8
				break
			}
			i += 8
		}
		switch {
		case i >= len(b) || b[i] < ' ':
			return i, unexpected(b, i)
		case b[i] == '"':
			return i + 1, nil
		case b[i] != '\\': // in the last seven bytes
			i++
		case i+1 < len(b) && unescaped[b[i+1]] != 0:
			i += 2
		default:
			var err error
			if i, err = skipUnicode(b, i+1); err != nil {
				return i, err
			}
		}
	}
}

// special sets the high bit of each of eight bytes that is a quotation mark, a
// backslash or a control character. A bit may be wrong only above one that is right,
// and only the lowest counts.
func special(x uint64) uint64 {
	const each = 0x0101010101010101 // a byte times this is eight of it
	// With the second bit turned, a quotation mark is a space, which comes next to the
	// control characters; these stay such.
	turned, backslash := x^2*each, x^'\\'*each
	return ((turned-(' '+1)*each)&^turned | (backslash-each)&^backslash) & (0x80 * each)
}

// skipUnicode returns the offset after the escape of which the u must be at i.
func skipUnicode(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != 'u' {
		return i, unexpected(b, i)
	}
	for j := i + 1; j <= i+4; j++ {
		if j >= len(b) || strings.IndexByte("0123456789abcdefABCDEF", b[j]) < 0 {
			return j, unexpected(b, j)
		}
	}
	return i + 5, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipNumber returns the offset after the number that begins at i.
func skipNumber(b []byte, i int) (_ int, err error) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, err = skipDigits(b, i); err != nil {
		return i, err
	}
	if i < len(b) && b[i] == '.' {
		if i, err = skipDigits(b, i+1); err != nil {
			return i, err
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i, nil
}

// skipDigits returns the offset after the digits at i, of which there must be one.
func skipDigits(b []byte, i int) (int, error) {
	if i >= len(b) || !isDigit(b[i]) {
		return i, unexpected(b, i)
	}
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, nil
}

// skipScalar returns the offset after the number, true, false or null that begins at i.
func skipScalar(b []byte, i int) (int, error) {
	if b[i] == '-' || isDigit(b[i]) {
		return skipNumber(b, i)
	}
	for _, literal := range [...]string{"null", "true", "false"} {
		if end := i + len(literal); end <= len(b) && string(b[i:end]) == literal {
			return end, nil
		}
	}
	return i, unexpected(b, i)
}

// unexpected returns the error for the character at i, or for the end of the text.
func unexpected(b []byte, i int) error {
	if i >= len(b) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("unexpected character %q at offset %d", b[i], i)
}

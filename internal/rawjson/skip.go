package rawjson

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// maxDepth is how deeply a text may be nested, as in encoding/json.
const maxDepth = 10_000

// IsNestedIn reports whether a JSON value can be nested in so many levels, and still be read.
func IsNestedIn(text []byte, levels int) bool {
	if len(text) <= 2*(maxDepth-levels) { // each level takes two bytes
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

// skipName returns the offset of the value of the member whose name begins at i.
func skipName(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, io.ErrUnexpectedEOF
	}
	if b[i] != '"' {
		return i, unexpected(b, i)
	}
	i, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	if i+1 < len(b) && b[i] == ':' && b[i+1] > ' ' { // as nearly everybody writes it
		return i + 1, nil
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return i, io.ErrUnexpectedEOF
	}
	if b[i] != ':' {
		return i, unexpected(b, i)
	}
	return skipSpace(b, i+1), nil
}

// skipString returns the offset after the string whose quotation mark is at i.
func skipString(b []byte, i int) (int, error) {
	i++
	for {
		for i+8 <= len(b) {
			if s := special(binary.LittleEndian.Uint64(b[i:])); s != 0 {
				i += bits.TrailingZeros64(s) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, io.ErrUnexpectedEOF
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			var err error
			if i, err = skipEscape(b, i); err != nil {
				return i, err
			}
		case c < ' ':
			return i, unexpected(b, i)
		default: // in the last seven bytes
			i++
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

// skipEscape returns the offset after the escape whose backslash is at i.
func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return i, io.ErrUnexpectedEOF
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) {
				return j, io.ErrUnexpectedEOF
			}
			if c := b[j]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return j, unexpected(b, j)
			}
		}
		return i + 6, nil
	default:
		return i + 1, unexpected(b, i+1)
	}
}

// skipNumber returns the offset after the number that begins at i.
func skipNumber(b []byte, i int) (int, error) {
	digits := func() error {
		if i >= len(b) {
			return io.ErrUnexpectedEOF
		}
		if b[i] < '0' || '9' < b[i] {
			return unexpected(b, i)
		}
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return nil
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if err := digits(); err != nil {
		return i, err
	}
	if i < len(b) && b[i] == '.' {
		i++
		if err := digits(); err != nil {
			return i, err
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if err := digits(); err != nil {
			return i, err
		}
	}
	return i, nil
}

// skipLiteral returns the offset after true, false or null at i.
func skipLiteral(b []byte, i int) (int, error) {
	for _, literal := range [...]string{"null", "true", "false"} {
		if b[i] != literal[0] {
			continue
		}
		for j := range len(literal) {
			if i+j >= len(b) {
				return i + j, io.ErrUnexpectedEOF
			}
			if b[i+j] != literal[j] {
				return i + j, unexpected(b, i+j)
			}
		}
		return i + len(literal), nil
	}
	return i, unexpected(b, i)
}

func unexpected(b []byte, i int) error {
	return fmt.Errorf("unexpected character %q at offset %d", b[i], i)
}

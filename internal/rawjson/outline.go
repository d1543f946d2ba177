package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// Span is the extent of an object or array: what it takes to pass over it, or to read it
// level by level, without looking at each of its bytes once more.
type Span struct {
	Size  int // of its text, in bytes
	Count int // of the spans from its own to that of the last value inside it
}

// Outline passes over the value that begins here, as Value does, and appends the spans of
// the objects and arrays in it to dst, in the order in which they begin. Those of a value
// inside are in one piece, so that they are its outline.
func (c *Cursor) Outline(dst []Span) (value []byte, _ []Span) {
	if c.err != nil {
		return nil, dst
	}
	at, dst, err := outline(c.text, c.at, dst, maxDepth-c.depth, true)
	return c.take(at, err), dst
}

// Skip passes over a value of which the size is known from an outline.
func (c *Cursor) Skip(size int) []byte {
	if c.err != nil {
		return nil
	}
	c.at += size
	return c.text[c.at-size : c.at : c.at]
}

// Follow passes over the value that begins here if its text is the given one, that of
// another value; else it does nothing. Only strings, objects and arrays are followed: the
// text of other values does not show where they end.
func (c *Cursor) Follow(value []byte) bool {
	if c.err != nil || len(value) == 0 || value[0] != '"' && value[0] != '{' && value[0] != '[' ||
		!bytes.HasPrefix(c.text[c.at:], value) {
		return false
	}
	c.at += len(value)
	return true
}

// skipValue returns the offset after the JSON value that begins at i, without decoding it.
// It accepts exactly what encoding/json.Valid accepts, if that may nest to the depth.
func skipValue(b []byte, i, depth int) (int, error) {
	var open [16]Span // nearly all JSON is nested less deeply, and needs no memory
	i, _, err := outline(b, i, open[:0], depth, false)
	return i, err
}

// outline is skipValue, and appends the spans of the value: all of them if keep is set,
// else only those of what is open. While an object or array is open, its span has its
// beginning as the size and the index of the one around it as the count.
//
// It passes over the inside of a string eight bytes at a time. All is in one loop: what it
// passes over is mostly short strings, and a call takes as long as one of these.
func outline(b []byte, i int, spans []Span, depth int, keep bool) (int, []Span, error) {
	const none = -1
	inner := none   // the innermost object or array that is open
	object := false // whether that is an object
	name := false   // whether the string at i must be a name
	for {
		// A name or a value begins at i.
		if i >= len(b) {
			return i, spans, io.ErrUnexpectedEOF
		}
		switch c := b[i]; {
		case c == '"':
			start := i
			plain := false
			for i++; i+8 <= len(b); {
				s := special(binary.LittleEndian.Uint64(b[i:]))
				if s == 0 {
					i += 8
					continue
				}
				i += bits.TrailingZeros64(s) / 8
				if b[i] == '\\' && i+1 < len(b) && unescaped[b[i+1]] != 0 {
					i += 2
					continue
				}
				plain = b[i] == '"'
				break
			}
			if plain {
				i++
			} else { // near the end, or with something rare in it
				var err error
				if i, err = skipString(b, start); err != nil {
					return i, spans, err
				}
			}
			if !name {
				break
			}
			name = false
			if i = space(b, i); i >= len(b) {
				return i, spans, io.ErrUnexpectedEOF
			}
			if b[i] != ':' {
				return i, spans, unexpected(b, i)
			}
			i = space(b, i+1)
			continue
		case name:
			return i, spans, unexpected(b, i)
		case c == '{' || c == '[':
			if depth == 0 {
				return i, spans, fmt.Errorf("nested deeper than %d at offset %d", maxDepth, i)
			}
			begin := i
			i = space(b, i+1)
			if i < len(b) && b[i] == c+2 { // } and ] are two above { and [
				i++
				if keep {
					spans = append(spans, Span{i - begin, 1})
				}
				break
			}
			depth--
			spans = append(spans, Span{begin, inner})
			inner = len(spans) - 1
			object = c == '{'
			name = object
			continue
		case c == '-' || '0' <= c && c <= '9':
			if i++; c > '0' && i < len(b) && (b[i] == ',' || b[i] == '}') {
				break // as most numbers are
			}
			var err error
			if i, err = skipNumber(b, i-1); err != nil {
				return i, spans, err
			}
		default:
			var err error
			if i, err = skipLiteral(b, i); err != nil {
				return i, spans, err
			}
		}
		// A value ended before i: go on to the next one, if there is one.
		for {
			if inner == none {
				return i, spans, nil
			}
			if i = space(b, i); i >= len(b) {
				return i, spans, io.ErrUnexpectedEOF
			}
			if b[i] == ',' {
				i = space(b, i+1)
				name = object
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, spans, unexpected(b, i)
			}
			i++
			closed := spans[inner]
			if keep {
				spans[inner] = Span{i - closed.Size, len(spans) - inner}
			} else {
				spans = spans[:inner]
			}
			inner = closed.Count
			object = inner != none && b[spans[inner].Size] == '{'
			depth++
		}
	}
}

// space is skipSpace, and faster without white space, as in nearly all JSON.
func space(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return skipSpace(b, i)
}

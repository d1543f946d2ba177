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
	Begin int // of its text, as an offset in that of the cursor
	Size  int // of its text, in bytes
	Count int // of the spans from its own to that of the last value inside it
}

// Outline passes over the value that begins here, as Value does, and appends the spans of
// the objects and arrays in it to dst, in the order in which they begin. Those of a value
// inside are in one piece, so that they are its outline.
func (c *Cursor) Outline(dst []Span) (value []byte, _ []Span) {
	return c.outlineOf(dst, maxDepth, 0)
}

// OutlineOfLarge is Outline, but leaves out the spans of values that are small, or nested
// in more than two others. So the spans take less memory than the text.
func (c *Cursor) OutlineOfLarge(dst []Span) (value []byte, _ []Span) {
	return c.outlineOf(dst, 3, 256)
}

func (c *Cursor) outlineOf(dst []Span, levels, least int) (value []byte, _ []Span) {
	if c.err != nil {
		return nil, dst
	}
	at, dst, err := outline(c.text, c.at, dst, maxDepth-c.depth, levels, least)
	return c.take(at, err), dst
}

// Again returns a cursor that reads the text from an offset to this one again. It passes over the
// values of an outline without reading them.
func (c *Cursor) Again(offset int, outline []Span) Cursor {
	return Cursor{text: c.text[:c.at:c.at], at: offset, outline: outline}
}

// skipOutlined passes over the value that begins here if it is in the outline.
func (c *Cursor) skipOutlined() (value []byte, ok bool) {
	for len(c.outline) > 0 && c.outline[0].Begin <= c.at {
		span := c.outline[0]
		if c.outline = c.outline[1:]; span.Begin == c.at {
			return c.Skip(span.Size), true
		}
	}
	return nil, false
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
	i, _, err := outline(b, i, open[:0], depth, 0, 0)
	return i, err
}

// outline is skipValue, and appends the spans of the value: those in so many levels that have at
// least a size. While an object or array is open, its span is there, and has the index of the one
// around it as the count.
//
// It passes over the inside of a string eight bytes at a time. All is in one loop: what it
// passes over is mostly short strings, and a call takes as long as one of these.
func outline(b []byte, i int, spans []Span, depth, levels, least int) (_ int, _ []Span, err error) {
	deepest := depth - levels // of what is kept
	const none = -1
	inner := none   // the innermost object or array that is open
	open := byte(0) // its first character
	name := false   // whether the string at i must be a name
	for {
		// A name or a value begins at i.
		if i >= len(b) {
			return i, spans, io.ErrUnexpectedEOF
		}
		switch c := b[i]; {
		case c == '"':
			for i++; i+8 <= len(b); i += 8 {
				if s := special(binary.LittleEndian.Uint64(b[i:])); s != 0 {
					i += bits.TrailingZeros64(s) / 8
					break
				}
			}
			if i < len(b) && b[i] == '"' {
				i++
			} else if i, err = skipString(b, i); err != nil {
				return i, spans, err
			}
			if !name {
				break
			}
			name = false
			if i = space(b, i); i >= len(b) || b[i] != ':' {
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
			depth--
			spans = append(spans, Span{Begin: i, Count: inner})
			inner, open = len(spans)-1, c
			if i = space(b, i+1); i >= len(b) || b[i] != closing(open) {
				name = open == '{'
				continue
			}
		case '1' <= c && c <= '9' && i+1 < len(b) && (b[i+1] == ',' || b[i+1] == '}'):
			i++ // as most numbers are
		default:
			if i, err = skipScalar(b, i); err != nil {
				return i, spans, err
			}
		}
		// A value ended before i, or an empty one ends here: go on to the next one, if there is one.
		for {
			if inner == none {
				return i, spans, nil
			}
			if i = space(b, i); i < len(b) && b[i] == ',' {
				i = space(b, i+1)
				name = open == '{'
				break
			}
			if i >= len(b) || b[i] != closing(open) {
				return i, spans, unexpected(b, i)
			}
			i++
			around := spans[inner].Count
			if size := i - spans[inner].Begin; depth >= deepest && size >= least {
				spans[inner].Size, spans[inner].Count = size, len(spans)-inner
			} else {
				spans = spans[:inner]
			}
			depth++
			if inner = around; inner != none {
				open = b[spans[inner].Begin]
			}
		}
	}
}

// closing returns the character that closes an object or array.
func closing(open byte) byte { return open + 2 } // } and ] are two above { and [

// space is skipSpace, and faster without white space, as in nearly all JSON.
func space(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return skipSpace(b, i)
}

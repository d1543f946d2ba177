package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Cursor reads one JSON text from left to right:
//
//	c := rawjson.NewCursor(text)
//	for c.Enter('{'); c.Next('{'); {
//		switch string(c.Name()) {
//		case "metadata":
//			for c.Enter('{'); c.Next('{'); {
//				...
//			}
//		default:
//			value := c.Value()
//		}
//	}
//	err := c.End()
//
// Each value must be taken by Enter or Value, and what was entered must be left, by
// Next. After an error, Next returns false and Value nil; End returns the error.
type Cursor struct {
	text  []byte
	at    int
	depth int  // how much has been entered and not left
	first bool // nothing has been read since Enter
	name  []byte
	start int // of the name, or of the element
	err   error

	outline []Span // of what comes: see Again
}

// NewCursor returns a cursor at the beginning of text.
func NewCursor(text []byte) Cursor {
	return Cursor{text: text, at: skipSpace(text, 0)}
}

// Enter goes into the object or array that begins here; open is '{' or '['.
func (c *Cursor) Enter(open byte) {
	switch {
	case c.err != nil:
	case c.at >= len(c.text):
		c.err = io.ErrUnexpectedEOF
	case c.text[c.at] != open:
		c.err = fmt.Errorf("expected %s, got %s", kindOf(open), kindOf(c.text[c.at]))
	case c.depth == maxDepth:
		c.err = fmt.Errorf("nested deeper than %d at offset %d", maxDepth, c.at)
	default:
		c.depth++
		c.at = skipSpace(c.text, c.at+1)
		c.first = true
	}
}

// Next goes on to the next member or element of what was entered last; open is '{' or '[',
// as it was for Enter. It returns false and leaves the array or object after the last one.
func (c *Cursor) Next(open byte) bool {
	if c.err != nil {
		return false
	}
	if c.at = skipSpace(c.text, c.at); c.at >= len(c.text) {
		c.err = io.ErrUnexpectedEOF
		return false
	}
	switch got := c.text[c.at]; {
	case got == closing(open):
		c.depth--
		c.at++
		c.first = false
		return false
	case c.first:
		c.first = false
	case got == ',':
		c.at = skipSpace(c.text, c.at+1)
	default:
		c.err = unexpected(c.text, c.at)
		return false
	}
	c.start = c.at
	return open == '[' || c.readName()
}

// readName reads the name of a member, and the colon.
func (c *Cursor) readName() bool {
	if c.at >= len(c.text) || c.text[c.at] != '"' {
		c.err = unexpected(c.text, c.at)
		return false
	}
	end, err := skipString(c.text, c.at+1)
	if err != nil {
		c.err = err
		return false
	}
	c.name = c.text[c.start+1 : end-1 : end-1]
	if c.at = space(c.text, end); c.at >= len(c.text) || c.text[c.at] != ':' {
		c.err = unexpected(c.text, c.at)
		return false
	}
	c.at = space(c.text, c.at+1)
	return true
}

// Guess goes on to the next member of an object, like Next, if the member begins with
// that text, a quoted name and a colon, and no white space is around it. Otherwise it
// returns false, and the cursor stays. Name is not for a member that was guessed.
func (c *Cursor) Guess(name []byte) bool {
	b, i := c.text, c.at
	if c.err != nil || i >= len(b) {
		return false
	}
	if !c.first {
		if b[i] != ',' {
			return false
		}
		i++
	}
	end := i + len(name)
	if end >= len(b) || string(b[i:end]) != string(name) || b[end] <= ' ' {
		return false
	}
	c.start, c.at, c.first = i, end, false
	return true
}

// Name returns the name of the member that Next went to, decoded. It is valid
// until the next call.
func (c *Cursor) Name() []byte {
	if bytes.IndexByte(c.name, '\\') >= 0 {
		name, _ := String(c.text[c.start:][:len(c.name)+2])
		return []byte(name)
	}
	return c.name
}

// NameText returns the text of that name: a JSON string.
func (c *Cursor) NameText() []byte { return c.text[c.start:][:len(c.name)+2] }

// Value passes over the value that begins here and returns its text.
func (c *Cursor) Value() []byte {
	if c.err != nil {
		return nil
	}
	if value, ok := c.skipOutlined(); ok {
		return value
	}
	at, err := skipValue(c.text, c.at, maxDepth-c.depth)
	return c.take(at, err)
}

// take takes the value that ends at an offset.
func (c *Cursor) take(at int, err error) []byte {
	if err != nil {
		c.err = err
		return nil
	}
	value := c.text[c.at:at:at]
	c.at = at
	return value
}

// Member returns the text of the member whose value has been taken, its name
// included.
func (c *Cursor) Member() []byte { return c.text[c.start:c.at:c.at] }

// Offset returns where the cursor is in the text.
func (c *Cursor) Offset() int { return c.at }

// Since returns the text from an offset to the cursor.
func (c *Cursor) Since(offset int) []byte { return c.text[offset:c.at:c.at] }

// Begins returns the first byte of the value that begins here; 0 at the end.
func (c *Cursor) Begins() byte {
	if c.err != nil || c.at >= len(c.text) {
		return 0
	}
	return c.text[c.at]
}

// Err returns the first error so far.
func (c *Cursor) Err() error { return c.err }

// End returns the first error, or one if the text goes on after its one value.
func (c *Cursor) End() error {
	if c.err == nil && skipSpace(c.text, c.at) < len(c.text) {
		c.err = errors.New("unexpected data after the value")
	}
	return c.err
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "number"
	default:
		return fmt.Sprintf("%q", first)
	}
}

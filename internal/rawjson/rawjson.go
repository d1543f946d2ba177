package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one name and value of a JSON object.
type Member struct {
	Name  string // decoded
	Value []byte // a slice of the object's text
	// Start and End are the offsets of the member in the object's text: from the
	// quotation mark that opens its name to the end of its value.
	Start, End int
}

// Members yields the members of a JSON object in their order. If the text is
// not one JSON object, the last pair holds the error.
func Members(object []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		for t, err := range values(object, '{', '}') {
			if err != nil {
				yield(Member{}, err)
				return
			}
			name, _ := String(t.name)
			m := Member{Name: name, Value: t.value, Start: t.start, End: t.end}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Elements yields the elements of a JSON array in their order, as slices of its
// text. If the text is not one JSON array, the last pair holds the error.
func Elements(array []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for t, err := range values(array, '[', ']') {
			if !yield(t.value, err) {
				return
			}
		}
	}
}

// item is an element of an array, or a member of an object.
type item struct {
	name, value []byte
	start, end  int
}

func values(text []byte, begin, end jsontext.Kind) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		fail := func(err error) { yield(item{}, err) }
		d := jsontext.NewDecoder(bytes.NewBuffer(text),
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		// next returns the next value as a slice of the text.
		next := func() (value []byte, start int, err error) {
			v, err := d.ReadValue()
			end := int(d.InputOffset())
			return text[end-len(v) : end : end], end - len(v), err
		}
		if open, err := d.ReadToken(); err != nil {
			fail(unexpectedEnd(err))
			return
		} else if open.Kind() != begin {
			fail(fmt.Errorf("expected %s, got %s", kindName(begin), kindName(open.Kind())))
			return
		}
		for d.PeekKind() != end {
			var it item
			var err error
			if begin == '{' {
				if it.name, it.start, err = next(); err != nil {
					fail(unexpectedEnd(err))
					return
				}
			}
			start := 0
			if it.value, start, err = next(); err != nil {
				fail(unexpectedEnd(err))
				return
			}
			if begin == '[' {
				it.start = start
			}
			it.end = int(d.InputOffset())
			if !yield(it, nil) {
				return
			}
		}
		if _, err := d.ReadToken(); err != nil {
			fail(unexpectedEnd(err))
			return
		}
		if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
			fail(fmt.Errorf("there is more after the %s", kindName(begin)))
		}
	}
}

// unexpectedEnd keeps io.EOF from being taken for a proper end.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	default:
		return k.String()
	}
}

// String decodes a JSON string; ok is false if value is none.
func String(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if plain := value[1 : len(value)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), true
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err == nil
}

// Quote returns s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // the error only reports the replacement
	return b
}

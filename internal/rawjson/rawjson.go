package rawjson

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one name and value of a JSON object.
type Member struct {
	Name  []byte // decoded
	Value []byte // its text
	Text  []byte // that of the whole member, from the name to the end of the value
}

// Members yields the members of a JSON object in their order, as slices of its
// text. If the text is not one JSON object, the last pair holds the error.
func Members(object []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		c := NewCursor(object)
		for c.Enter('{'); c.Next('{'); {
			m := Member{Name: c.Name(), Value: c.Value(), Text: object[c.start:c.at:c.at]}
			if c.err == nil && !yield(m, nil) {
				return
			}
		}
		if err := c.End(); err != nil {
			yield(Member{}, err)
		}
	}
}

// String decodes a JSON string; ok is false if value is not a string.
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

package merge

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Encode returns the changes as a JSON list, which [Parse] reads. Values have no white space
// and no needless escapes: Go's encoder, and with it the API server, writes < in six bytes.
func (c Changes) Encode() []byte {
	return appendList(nil, c, Change.append)
}

func (c Change) append(b []byte) []byte {
	b = appendList(append(b, `{"path":`...), c.path, step.append)
	switch {
	case c.insert:
		b = appendValue(append(b, `,"insert":`...), c.value)
	case c.value != nil:
		b = appendValue(append(b, `,"value":`...), c.value)
	}
	if c.was != "" {
		b = rawjson.AppendQuote(append(b, `,"was":`...), c.was)
	}
	if c.place != nil && c.after.selects() {
		b = c.after.append(append(b, `,"after":`...))
	}
	if c.place != nil && c.before.selects() {
		b = c.before.append(append(b, `,"before":`...))
	}
	if c.reordering != nil {
		b = appendList(append(b, `,"order":`...), c.want, step.append)
		b = appendList(append(b, `,"from":`...), c.from, appendInt)
	}
	switch {
	case c.elements == nil:
	case c.all != nil:
		b = appendValue(append(b, `,"elements":`...), c.all)
	default:
		b = appendList(append(b, `,"hashes":`...), c.hashes, appendQuoted)
	}
	return append(b, '}')
}

// appendValue appends a value in its shortest form, or as it is if a string is not valid Unicode.
func appendValue(b, value []byte) []byte {
	b, _ = jsontext.AppendFormat(b, value, jsontext.AllowDuplicateNames(true)) // on an error, it appends the value
	return b
}

func appendQuoted(s string, b []byte) []byte { return rawjson.AppendQuote(b, s) }

func (s step) append(b []byte) []byte {
	switch {
	case s.key != "":
		b = append(append(b, `{"key":`...), s.key...)
	case s.at > 0:
		b = appendInt(s.at-1, append(b, `{"at":`...))
	default:
		return rawjson.AppendQuote(b, s.name)
	}
	return append(b, '}')
}

func appendInt(i int, b []byte) []byte { return strconv.AppendInt(b, int64(i), 10) }

// appendList appends a JSON list of what appendTo makes of each element.
func appendList[E any](b []byte, list []E, appendTo func(e E, b []byte) []byte) []byte {
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTo(e, b)
	}
	return append(b, ']')
}

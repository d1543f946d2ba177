package codec

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Memory is what the decoders and encoders of one Codecs work with, in one goroutine.
// The values that are decoded share it, and stay good: it is handed out once, unless
// [Memory.Reset] is called.
type Memory struct {
	decoded []byte          // a string
	strings strings.Builder // a chunk that decoded strings are parts of
	words   []string        // memory of decoded lists of strings
	slabs   []slab          // by type
	encoded bytes.Buffer    // what encoding/json wrote
	keys    []string        // of a map that is being encoded
	depth   int             // of the value that is being encoded
	held    int             // bytes of strings that decoded values hold
}

// Reset makes the memory of all values that have been decoded free for others. That of
// their strings is not used again: somebody may have kept them.
func (m *Memory) Reset() {
	m.words, m.held = m.words[:0], 0
	for i := range m.slabs {
		m.slabs[i].reset()
	}
}

// Size returns about how many bytes it keeps, with what those strings hold that have been
// decoded since the last reset: they may be in values that it keeps.
func (m *Memory) Size() int {
	size := m.held + cap(m.decoded) + 16*cap(m.words) + m.encoded.Cap() + 16*cap(m.keys)
	for i := range m.slabs {
		size += m.slabs[i].bytes
	}
	return size
}

// stringBytes is how much memory for strings is taken at a time.
const stringBytes = 16 << 10

// Intern copies text into a string. Many strings share one allocation.
func (m *Memory) Intern(text []byte) string {
	m.held += len(text)
	if m.strings.Cap()-m.strings.Len() < len(text) {
		if len(text) > stringBytes/4 {
			return string(text)
		}
		m.strings = strings.Builder{}
		m.strings.Grow(stringBytes)
	}
	begin := m.strings.Len()
	m.strings.Write(text)
	return m.strings.String()[begin:]
}

// String decodes the string at the cursor; ok is false if there is none.
func (m *Memory) String(c *rawjson.Cursor) (s string, ok bool) {
	if text, plain := c.Plain(); plain {
		return m.Intern(text), true
	}
	m.decoded, ok = c.AppendString(m.decoded[:0])
	return m.Intern(m.decoded), ok
}

// Name decodes the name that the cursor is at; ok is false if it is no Unicode.
func (m *Memory) Name(c *rawjson.Cursor) (s string, ok bool) {
	name := c.Name()
	return m.Intern(name), utf8.Valid(name)
}

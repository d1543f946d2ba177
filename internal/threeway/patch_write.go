package threeway

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// patch is the text of the operations so far.
type patch struct {
	ops   []byte
	path  []byte // the JSON pointer of the value that is being compared
	spare int    // how many operations there may be beside one for each difference that is being written
}

// free forgets the operations, and keeps room for so many bytes.
func (p *patch) free(most int) {
	if cap(p.ops) > most {
		p.ops = nil
	}
	if cap(p.path) > most {
		p.path = nil
	}
	clear(p.ops)
	clear(p.path[:cap(p.path)])
	*p = patch{ops: p.ops[:0], path: p.path[:0]}
}

// in runs f at the member of that name.
func (p *patch) in(name []byte, f func()) {
	n := len(p.path)
	p.path = append(p.path, '/')
	for _, c := range name {
		switch c {
		case '~':
			p.path = append(p.path, '~', '0')
		case '/':
			p.path = append(p.path, '~', '1')
		default:
			p.path = append(p.path, c)
		}
	}
	f()
	p.path = p.path[:n]
}

// at runs f at the element of that index.
func (p *patch) at(index int, f func()) {
	n := len(p.path)
	p.path = strconv.AppendInt(append(p.path, '/'), int64(index), 10)
	f()
	p.path = p.path[:n]
}

// op writes an operation at the path; a nil value is none.
func (p *patch) op(op string, value *node) {
	p.begin(op)
	p.pointer(`,"path":`, p.path)
	if value != nil {
		p.ops = append(p.ops, `,"value":`...)
		p.ops = appendValue(p.ops, value)
	}
	p.ops = append(p.ops, '}')
}

// move writes the operation that moves an element of the list at the path.
func (p *patch) move(from, to int) {
	p.begin("move")
	p.at(from, func() { p.pointer(`,"from":`, p.path) })
	p.at(to, func() { p.pointer(`,"path":`, p.path) })
	p.ops = append(p.ops, '}')
}

func (p *patch) begin(op string) {
	sep := byte(',')
	if len(p.ops) == 0 {
		sep = '['
	}
	p.ops = append(p.ops, sep)
	p.ops = append(p.ops, `{"op":"`...)
	p.ops = append(p.ops, op...)
	p.ops = append(p.ops, '"')
}

func (p *patch) pointer(name string, pointer []byte) {
	p.ops = append(p.ops, name...)
	p.ops, _ = jsontext.AppendQuote(p.ops, pointer) // names are valid UTF-8 here
}

// appendValue writes a value without white space; strings and numbers keep
// their text.
func appendValue(dst []byte, n *node) []byte { return n.append(dst, rawjson.AppendCompact) }

// appendText writes a value. What merge has left alone keeps its text.
func appendText(dst []byte, n *node) []byte {
	return n.append(dst, func(dst, text []byte) []byte { return append(dst, text...) })
}

func (n *node) append(dst []byte, appendText func(dst, text []byte) []byte) []byte {
	if n.text != nil {
		return appendText(dst, n.text)
	}
	object := n.is('{')
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i, k := range n.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		if object {
			dst, _ = jsontext.AppendQuote(dst, k.name)
			dst = append(dst, ':')
		}
		dst = k.append(dst, appendText)
	}
	return append(dst, end)
}

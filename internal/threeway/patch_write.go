package threeway

import (
	"strconv"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// patch is the text of the operations so far.
type patch struct {
	ops    []byte
	path   []byte // the JSON pointer of the value that is being compared
	coarse bool   // whether only the members of the object are replaced
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
	sep := byte(',')
	if len(p.ops) == 0 {
		sep = '['
	}
	p.ops = append(append(append(p.ops, sep), `{"op":"`...), op...)
	p.ops = rawjson.AppendQuote(append(p.ops, `","path":`...), string(p.path))
	if value != nil {
		p.ops = value.append(append(p.ops, `,"value":`...))
	}
	p.ops = append(p.ops, '}')
}

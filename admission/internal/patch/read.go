package patch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads the kids of nodes.
type reader struct {
	dec   jsontext.Decoder
	src   bytes.Buffer
	text  []byte // what dec reads
	err   error  // the first one
	spare int    // how many bytes may still be read level by level
	stack []kid  // the kids of the values that are being read
	slab  []node // where the next nodes are taken from

	converted bool // see MakeConverted
}

// newReader returns a reader for inputs of that size together. To read level by
// level is what makes skipping possible, but it looks at a value once for each
// level above it, which would be quadratic in a very deep object. So after that
// many bytes whole values are read at once.
func newReader(size int) *reader { return &reader{spare: 16 * size, stack: make([]kid, 0, 16)} }

// lenient are the options of the API server's own decoder: it takes duplicate
// names and invalid UTF-8.
func lenient() (names, utf8 jsontext.Options) {
	return jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)
}

// object reads a text that must be one JSON object.
func (r *reader) object(text []byte, like *node) (*node, error) {
	n := &node{kind: '{', text: text}
	r.kids(n, like)
	return n, r.err
}

// kids returns the kids of an object or a list; none for another kind, for a nil
// node and after an error. Like is a node that may have much text in common
// with n, or nil.
func (r *reader) kids(n, like *node) []kid {
	switch {
	case n == nil:
		return nil
	case n.read || n.kind != '{' && n.kind != '[' || r.err != nil:
		return n.kids
	}
	if !r.share(n, like) {
		n.have(r.parse(n.text, n.kind))
	}
	return n.kids
}

// share reads the kids of n, but takes those in the common beginning and end of
// the two texts from like. The tokenizer sees what is between, with a
// placeholder on either side for what is not: when that is one JSON value, it is
// n without the shared kids. It reports whether n could be read so.
func (r *reader) share(n, like *node) bool {
	if like == nil || like.kind != n.kind || !like.read || like.lost {
		return false
	}
	head := commonPrefix(like.text, n.text)
	tail := commonSuffix(like.text[head:], n.text[head:])
	// Shared is what ends by from or starts at to. The byte next to it must be in
	// common too, lest a number go on.
	from, to := 0, len(like.text)
	for _, k := range like.kids {
		if k.end < head {
			from = max(from, k.end)
		}
		if k.start > len(like.text)-tail {
			to = min(to, k.start)
		}
	}
	before, behind := from > 0, to < len(like.text)
	if to-from > len(like.text)/2 {
		return false // too little to be worth it
	}

	open, placeholder, end := "[", "0", "]"
	if n.kind == '{' {
		open, placeholder, end = "{", `"":0`, "}"
	}
	middle := n.text[from : to+len(n.text)-len(like.text)]
	text := make([]byte, 0, len(middle)+2*(len(open)+len(placeholder)))
	if before {
		text = append(text, open+placeholder...)
	}
	text = append(text, middle...)
	if behind {
		text = append(text, placeholder+end...)
	}
	between := r.parse(text, n.kind)
	if r.err != nil {
		r.err = nil // to read the whole will tell better
		return false
	}
	if before {
		between = between[1:]
	}
	if behind {
		between = between[:len(between)-1]
	}

	kids := make([]kid, 0, len(like.kids)+len(between))
	for _, k := range like.kids {
		if k.end <= from {
			kids = append(kids, k)
		}
	}
	kids = append(kids, between...)
	for _, k := range like.kids {
		if k.start >= to {
			kids = append(kids, k)
		}
	}
	n.have(kids)
	return true
}

// parse returns the kids of a text that must be one value of that kind.
func (r *reader) parse(text []byte, kind jsontext.Kind) []kid {
	names, utf8 := lenient()
	r.text = text
	r.src = *bytes.NewBuffer(text)
	r.dec.Reset(&r.src, names, utf8)
	r.spare -= len(text)
	kids := r.next(kind, r.spare < 0)
	if _, err := r.dec.ReadToken(); err != io.EOF {
		r.fail(errors.New("there is more after the JSON value"))
	}
	return kids
}

// next returns the kids of the decoder's next value; with deep, it reads theirs
// too.
func (r *reader) next(kind jsontext.Kind, deep bool) []kid {
	base := len(r.stack)
	if t, err := r.dec.ReadToken(); err != nil {
		r.fail(err)
	} else if t.Kind() != kind {
		r.fail(fmt.Errorf("got a JSON %v where %v is due", t.Kind(), kind))
	}
	for r.err == nil {
		peek := r.dec.PeekKind()
		if peek == '}' || peek == ']' {
			break
		}
		k := kid{node: r.alloc()}
		if kind == '{' {
			name := r.value()
			k.name = unquote(name)
			k.start = int(r.dec.InputOffset()) - len(name)
			peek = r.dec.PeekKind()
		}
		k.kind = peek
		if deep && (peek == '{' || peek == '[') {
			start := int(r.dec.InputOffset())
			k.have(r.next(peek, deep))
			k.text = bytes.TrimLeft(r.text[start:r.dec.InputOffset()], ":, \t\r\n")
		} else {
			k.text = r.value()
		}
		k.end = int(r.dec.InputOffset())
		if kind == '[' {
			k.start = k.end - len(k.text)
		}
		r.stack = append(r.stack, k)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail(err)
	}
	kids := slices.Clone(r.stack[base:])
	r.stack = r.stack[:base]
	return kids
}

// value returns the text of the decoder's next value.
func (r *reader) value() []byte {
	v, err := r.dec.ReadValue()
	if err != nil {
		r.fail(err)
		return nil
	}
	end := int(r.dec.InputOffset())
	return r.text[end-len(v) : end : end]
}

// fail keeps the first error.
func (r *reader) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) alloc() *node {
	if len(r.slab) == cap(r.slab) {
		r.slab = make([]node, 0, min(max(32, 2*cap(r.slab)), 4096))
	}
	r.slab = append(r.slab, node{})
	return &r.slab[len(r.slab)-1]
}

func commonPrefix(a, b []byte) int {
	const block = 64 // compared at once
	n, end := 0, min(len(a), len(b))
	for n+block <= end && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []byte) int {
	const block = 64
	n, end := 0, min(len(a), len(b))
	for n+block <= end && bytes.Equal(a[len(a)-n-block:len(a)-n], b[len(b)-n-block:len(b)-n]) {
		n += block
	}
	for n < end && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

package merge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// maxPointer bounds the paths of a patch, in bytes. A value below is replaced whole, because in an
// object as deep as the tokenizer allows, with an edit at every level, the paths alone would be
// thousands of times its size.
const maxPointer = 1 << 10

// maxOps is the number of operations that the API server accepts in a PATCH request
// (maxJSONPatchOperations in endpoints/handlers/patch.go). It accepts any number from a webhook
// (admission/plugin/webhook/mutating/dispatcher.go), but they are as much work.
const maxOps = 10_000

const (
	// opSize is about what an operation takes besides its path and its value.
	opSize = 40

	// maxWork bounds the elements that are added and removed in one list, times its length, because
	// the API server copies the list for each of them.
	maxWork = 1 << 24
)

// Patch returns the JSON patch (RFC 6902) that makes the changes from before to after to raw, and,
// if withMerged is set, the patched object. Both are nil if there are no changes.
//
// Raw is an API object as its sender wrote it. Before and after are the encodings of the Go value
// that was decoded from it, before and after the caller changed that value. Both must come from the
// same encoder, with the elements of lists in the order of raw. Keys has the keys of lists, where
// they are known, and may be nil. The inputs are not changed. Patch returns an error if an input is
// not a JSON object, but reads none of them if before and after are the same to the byte.
//
// Converted is set if a conversion to another version and back has made before and after. Elements
// of a list that the conversion has reordered or joined are then found by the list's key, or else by
// what they share with raw's; if that is not possible, a list that changed is replaced.
func Patch(
	raw, before, after []byte, keys *listmapkeys.Tree, converted, withMerged bool,
) (patch, merged []byte, err error) {
	if bytes.Equal(before, after) {
		return nil, nil, nil
	}
	r := borrow()
	defer r.release()
	r.converted = converted
	return r.makePatch(raw, before, after, keys, withMerged)
}

func (r *reader) makePatch(
	raw, before, after []byte, keys *listmapkeys.Tree, withMerged bool,
) (patch, merged []byte, err error) {
	b, err := r.object(before, nil, false)
	if err != nil {
		return nil, nil, fmt.Errorf("the object before: %w", err)
	}
	a, err := r.object(after, b, true)
	if err != nil {
		return nil, nil, fmt.Errorf("the object after: %w", err)
	}
	old, err := r.object(raw, b, false)
	if err != nil {
		return nil, nil, fmt.Errorf("the raw object: %w", err)
	}
	p := &r.patch
	want := r.merge(old, b, a, keys)
	p.coarse = want.ops > maxOps
	p.diff(old, want)
	if len(p.ops) == 0 {
		return nil, nil, nil
	}
	p.ops = append(p.ops, ']')
	if !rawjson.IsNestedIn(p.ops, 0) { // a value may be a level deeper than in its object
		return nil, nil, errors.New("the patch is nested deeper than the API server reads")
	}
	if withMerged {
		merged = want.append(make([]byte, 0, len(raw)+len(p.ops)))
	}
	return bytes.Clone(p.ops), merged, nil
}

// diff writes the operations from raw to the result of merge. A nil node is an absent value.
func (p *patch) diff(raw, want *node) {
	switch {
	case raw == want:
	case raw == nil:
		p.op("add", want)
	case want == nil:
		p.op("remove", nil)
	case want.text != nil || raw.kind != want.kind,
		len(p.path) > maxPointer || p.coarse && len(p.path) > 0:
		p.op("replace", want)
	case want.is('{'):
		p.object(raw, want)
	default:
		p.list(raw, want)
	}
}

// object writes the operations for the members that differ, in order of names.
func (p *patch) object(raw, want *node) {
	olds, wants := raw.kids, want.kids
	for len(olds)+len(wants) > 0 {
		if len(olds) > 0 && len(wants) > 0 && olds[0] == wants[0] {
			olds, wants = olds[1:], wants[1:]
			continue
		}
		name := first(olds, wants)
		old, want := take(&olds, name), take(&wants, name)
		if old != want {
			p.in(name, func() { p.diff(old, want) })
		}
	}
}

// list writes the operations from the elements of raw to those of want: first it removes elements
// from the end on, and then it adds and edits from the beginning on, so that every index is right
// when the API server applies its operation.
func (p *patch) list(raw, want *node) {
	if want.from == nil || p.shorterWhole(raw, want) {
		p.op("replace", want)
		return
	}
	stay := slices.DeleteFunc(slices.Clone(want.from), func(i int) bool { return i == none })
	for i := len(raw.kids) - 1; i >= 0; i-- {
		if n := len(stay); n > 0 && stay[n-1] == i {
			stay = stay[:n-1]
		} else {
			p.in(strconv.AppendInt(nil, int64(i), 10), func() { p.op("remove", nil) })
		}
	}
	for j, i := range want.from {
		var old *node
		if i != none {
			old = raw.kids[i]
		}
		if old != want.kids[j] {
			p.in(strconv.AppendInt(nil, int64(j), 10), func() { p.diff(old, want.kids[j]) })
		}
	}
}

// shorterWhole reports whether the operations on its elements are longer than a list.
func (p *patch) shorterWhole(raw, want *node) bool {
	size := (want.ops - 1) * (opSize + len(p.path))
	for j, i := range want.from { // until the operations are longer than the list
		if size <= 0 {
			return false
		}
		if i != none && (want.kids[j].text == nil || want.kids[j] == raw.kids[i]) {
			size -= len(raw.kids[i].text)
		}
	}
	return size > 0
}

// patch is the text of the operations so far.
type patch struct {
	ops    []byte
	path   []byte // the JSON pointer of the value that is being compared
	coarse bool   // whether only the members of the object are replaced
}

// in runs f at the member of that name, or at the element of that index.
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

// op writes an operation at the path. It omits a nil value.
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

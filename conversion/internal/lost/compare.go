package lost

import "bytes"

// Object is a JSON object that has been read.
type Object struct{ root *node }

// Read reads a JSON object. The error says that it is none.
func Read(text []byte) (Object, error) {
	root, err := readObject(text)
	return Object{root}, err
}

// Within reports whether larger is the object, or that with more members and elements.
func (o Object) Within(larger Object) bool { return o.root.within(larger.root) }

// Hash returns a hash of the object, the same in any order of members.
func (o Object) Hash() string { return o.root.hash() }

// Equal reports whether two objects are the same but for the order of members.
func (o Object) Equal(other Object) bool { return o.root.same(other.root) }

// same is like equal, for values that are compared once.
func (n *node) same(o *node) bool {
	switch {
	case bytes.Equal(n.text, o.text):
		return true
	case n.text[0] != o.text[0] || len(n.kids) != len(o.kids):
		return false
	case n.is('{'):
		for _, kid := range n.kids {
			if other := o.member(kid.name); other == nil || !kid.same(other) {
				return false
			}
		}
		return true
	case n.is('['):
		for i, kid := range n.kids {
			if !kid.same(o.kids[i]) {
				return false
			}
		}
		return true
	default:
		return n.equal(o)
	}
}

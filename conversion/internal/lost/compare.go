package lost

import "bytes"

// Within reports whether one JSON object is another one, or that with more members and
// elements. The error says that one is no JSON object.
func Within(object, larger []byte) (bool, error) {
	o, err := readObject(object)
	if err != nil {
		return false, err
	}
	l, err := readObject(larger)
	if err != nil {
		return false, err
	}
	return o.within(l), nil
}

// Hash returns a hash of a JSON object, the same in any order of members. The error says
// that it is none.
func Hash(object []byte) (string, error) {
	n, err := readObject(object)
	if err != nil {
		return "", err
	}
	return n.hash(), nil
}

// Equal reports whether two JSON objects are the same but for the order of members. The
// error says that one is none.
func Equal(a, b []byte) (bool, error) {
	x, err := readObject(a)
	if err != nil {
		return false, err
	}
	y, err := readObject(b)
	if err != nil {
		return false, err
	}
	return x.same(y), nil
}

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

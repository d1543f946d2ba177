package lost

import "github.com/crdkit/crdkit/internal/rawjson"

// touch notes that something is done to the kids of n.
func (n *node) touch() {
	for ; n != nil && !n.edited; n = n.parent {
		n.edited = true
	}
}

// add gives n a kid more.
func (n *node) add(kid *node) {
	n.adopt(kid)
	n.touch()
}

// remove takes n from its parent.
func (n *node) remove() {
	n.removed = true
	if n.parent.names != nil {
		delete(n.parent.names, n.name)
	}
	n.parent.touch()
}

// replace puts a text in the place of n.
func (n *node) replace(text []byte) {
	n.instead = text
	n.parent.touch()
}

// append appends the text of what has become of n.
func (n *node) append(b []byte) []byte {
	switch {
	case n.instead != nil:
		return append(b, n.instead...)
	case !n.edited:
		return append(b, n.text...)
	}
	open, comma := n.text[0], false
	b = append(b, open)
	for _, kid := range n.kids {
		if kid.removed {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		if open == '{' {
			b = rawjson.AppendQuote(b, kid.name)
			b = append(b, ':')
		}
		b = kid.append(b)
	}
	return append(b, open+2) // } and ] are two above { and [
}

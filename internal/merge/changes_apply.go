package merge

import (
	"errors"
	"fmt"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Mode is how a change is applied to an object that a user has edited.
type Mode uint8

const (
	// Unedited makes a change only where the user has not edited the object.
	Unedited Mode = iota
	// Always makes a change even where the user has edited the object: it replaces the user's
	// value, and creates the missing maps and lists on its path. It does not create other objects
	// that the user has removed, because half an object is worth less than none.
	Always
	// Never leaves a change out.
	Never
)

// Apply returns an object, which is before or an edit of it, with the changes, and the indexes of
// those that are void. There is a mode for each change. Keys are those that Diff was given. Maps,
// called when a mode is Always, knows which objects have fields of any name. If unedited is set, the
// object is not an edit, but another conversion of the object from which before was made, and
// elements of lists without keys are found by their places too.
//
// Apply returns an error if edited is not a JSON object, or if the result is nested too deeply.
func (c Changes) Apply(
	edited []byte, keys *listmapkeys.Tree, maps func() *listmapkeys.Tree, modes []Mode, unedited bool,
) (text []byte, void []int, err error) {
	object, err := Read(edited)
	if err != nil {
		return nil, nil, fmt.Errorf("edited: %w", err)
	}
	a := applier{reader: borrow(), root: object.root, keys: keys, maps: maps, unedited: unedited,
		lists: map[*node]*list{}}
	defer a.release()
	var edits []func()
	for i := range c {
		if c[i].elements != nil {
			a.elements(&c[i]) // also for a change that is left out, because others need the elements
			continue
		}
		if modes[i] == Never {
			continue
		}
		edit := a.plan(&c[i], modes[i] == Always)
		if edit == nil {
			void = append(void, i)
			continue
		}
		edits = append(edits, edit)
	}
	for _, edit := range edits {
		edit()
	}
	for _, l := range a.lists {
		l.weave()
	}
	text = a.root.append(make([]byte, 0, len(edited)))
	if !rawjson.IsNestedIn(text, 0) {
		return nil, nil, errors.New("the object is nested too deeply after the changes")
	}
	return text, void, nil
}

// applier finds the places of all changes before it edits anything, because elements are found by
// their former content.
type applier struct {
	*reader
	root     *node
	keys     *listmapkeys.Tree
	maps     func() *listmapkeys.Tree
	unedited bool
	lists    map[*node]*list
}

// elements finds the elements of a list again that the change has from before.
func (a *applier) elements(c *Change) {
	l := a.listAt(c.path)
	switch {
	case l == nil:
	case c.all != nil:
		before, _ := read(c.all) // Diff or Parse has read it before
		a.identify(l, before.kids, hashesOf(before.kids))
	default:
		a.identify(l, nil, c.hashes)
	}
}

// plan returns the edit that makes a change, or nil if the change is void.
func (a *applier) plan(c *Change, always bool) func() {
	path, last := c.path[:len(c.path)-1], c.path[len(c.path)-1]
	switch {
	case c.reordering != nil:
		l := a.listAt(c.path)
		if l == nil || !l.reorder(c.want, c.from, always) { // now, before other changes find their places in the new order
			return nil
		}
		return func() {}
	case c.insert:
		return a.inList(c.path, always, func(l *list) { l.insert(c.node(), c.place) })
	case c.was != "":
		return a.replace(c, always)
	case last.selects():
		return a.inList(path, always, func(l *list) { a.element(l, c, always) })
	default:
		if there := a.find(c.path); there != nil && !always && !c.fits(there) {
			return nil
		}
		return a.inObject(path, c.made, always, func(object *node) {
			a.member(object, c.node(), path, always)
		})
	}
}

// fits reports whether the value can be merged into the present one, or equals it.
func (c *Change) fits(there *node) bool {
	value := c.node()
	return there.kind == value.kind && value.nests() || there.same(value)
}

// replace returns the edit that replaces or removes a value of before.
func (a *applier) replace(c *Change, always bool) func() {
	n := a.find(c.path)
	path, last := c.path[:len(c.path)-1], c.path[len(c.path)-1]
	switch {
	case n != nil && (always || n.hash() == c.was):
		if c.value == nil {
			return n.remove
		}
		return func() { n.replace(c.value) }
	case n == nil && always && c.value == nil:
		return func() {}
	case n == nil && always && !last.selects():
		return a.inObject(path, 0, true, func(object *node) { a.member(object, c.node(), path, true) })
	default:
		return nil
	}
}

// inObject returns an edit of the object at a path, or nil if the object is missing and may not be
// created. The last made steps lead to objects that before lacks.
func (a *applier) inObject(path []step, made int, always bool, edit func(object *node)) func() {
	if n := a.find(path); n.is('{') {
		return func() { edit(n) }
	}
	makeIt := a.make(path, '{')
	if makeIt == nil || !a.mayMake(path[:len(path)-made], always) {
		return nil
	}
	return func() {
		if n := makeIt(); n != nil {
			edit(n)
		}
	}
}

// mayMake reports whether the missing objects at a path, which before has, may be created.
func (a *applier) mayMake(path []step, always bool) bool {
	for i := range path {
		n := a.find(path[:i+1])
		// A user who removes the last visible field of an object at the top, such as spec, or the
		// last entry of a map, also removes the object or map. This says nothing about the fields
		// that the user does not see.
		goes := i == 0 && (n == nil || always) ||
			always && (a.unedited || treeAt(a.maps(), path[:i+1]).IsMap())
		if n.empty() && !goes {
			return false
		}
	}
	return true
}

// inList is like inObject for a list.
func (a *applier) inList(path []step, always bool, edit func(l *list)) func() {
	if l := a.listAt(path); l != nil {
		return func() { edit(l) }
	}
	makeIt := a.make(path, '[')
	if !always || makeIt == nil || !a.mayMake(path[:len(path)-1], true) {
		return nil
	}
	return func() {
		if l := a.list(makeIt(), path, nil); l != nil {
			edit(l)
		}
	}
}

// make returns a function that creates the object or list at a path of which the end is missing or
// null, or nil if there is another value, or if an element on the path is missing. The function
// returns nil if another value has come there since.
func (a *applier) make(path []step, kind byte) func() *node {
	there := len(path)
	for there > 0 && a.find(path[:there]).empty() {
		there--
		if path[there].selects() {
			return nil
		}
	}
	parent := a.find(path[:there])
	if there == len(path) || !parent.is('{') {
		return nil
	}
	return func() *node {
		n := parent
		for i, s := range path[there:] {
			if !n.is('{') {
				return nil
			}
			kid := n.at([]byte(s.name))
			if kid.empty() {
				if kid != nil {
					kid.remove()
				}
				kid = &node{name: []byte(s.name), kind: '{', text: []byte("{}")}
				if there+i+1 == len(path) && kind == '[' {
					kid.kind, kid.text = '[', []byte("[]")
				}
				n.add(kid)
			}
			n = kid
		}
		if !n.is(kind) {
			return nil
		}
		return n
	}
}

// find returns the value at a path, or nil.
func (a *applier) find(path []step) *node {
	n, _ := a.lookUp(path)
	return n
}

// listAt returns the list at a path, or nil.
func (a *applier) listAt(path []step) *list {
	n, before := a.lookUp(path)
	return a.list(n, path, before)
}

// lookUp returns the value at a path, or nil, and its former value, if that is known from a list
// without keys.
func (a *applier) lookUp(path []step) (n, before *node) {
	n = a.root
	for i, s := range path {
		switch {
		case n.is('{') && !s.selects():
			n = n.at([]byte(s.name))
			if before.is('{') {
				before = member(before.kids, s.name)
			} else {
				before = nil
			}
		case n.is('[') && s.selects():
			n, before = a.list(n, path[:i], before).element(s)
		default:
			return nil, nil
		}
	}
	return n, before
}

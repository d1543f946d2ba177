package merge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the text of [Changes.Encode]. Because any client may have written the text, Parse
// returns an error with the index of the first change that [Diff] would not have made, or that
// changes apiVersion, kind, or metadata other than labels and annotations.
func Parse(text []byte) (Changes, error) {
	list, err := read(text)
	if err == nil && !list.is('[') {
		err = errors.New("not a JSON array")
	}
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	changes := slices.Grow(Changes(nil), len(list.kids))
	for i, n := range list.kids {
		c, err := parseChange(n)
		if err != nil {
			return nil, fmt.Errorf("change %d: %w", i, err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func parseChange(n *node) (c Change, err error) {
	if !n.is('{') {
		return c, errors.New("not an object")
	}
	var between place
	var sorted reordering
	var had elements
	for _, field := range n.kids {
		switch string(field.name) {
		case "path":
			c.path, err = parsePath(field)
		case "value":
			c.value = field.text
		case "insert":
			c.value, c.insert = field.text, true
		case "was":
			c.was, err = parseHash(field)
		case "after":
			between.after, err = parseSelector(field)
			c.place = &between
		case "before":
			between.before, err = parseSelector(field)
			c.place = &between
		case "order":
			sorted.want, err = parseList(field, parseSelector)
			c.reordering = &sorted
		case "from":
			sorted.from, err = parseList(field, parseInt)
		case "elements":
			if !field.is('[') {
				err = errors.New("not an array")
			}
			had.all, c.elements = field.text, &had
		case "hashes":
			had.hashes, err = parseList(field, parseHash)
			c.elements = &had
		default:
			err = errors.New("no such field")
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return c, c.check(n)
}

// check returns an error if the fields do not make one kind of change.
func (c *Change) check(n *node) error {
	if c.path == nil {
		return errors.New("path is missing")
	}
	var fields []string // beside the path
	switch last := c.path[len(c.path)-1]; {
	case c.elements != nil && (c.all == nil) == (c.hashes == nil):
		return errors.New("expected either elements or hashes")
	case c.elements != nil:
		fields = []string{"elements", "hashes"}
	case c.reordering != nil:
		fields = []string{"order", "from"}
		if len(c.want) < 2 {
			return errors.New("order: needs two elements")
		}
		if !permutes(c.from, len(c.want)) {
			return errors.New("from: expected one index for each element of order")
		}
	case c.insert:
		fields = []string{"insert", "after", "before"}
	case c.value != nil && last.at > 0 && c.was == "":
		return errors.New("was: required for an element that is identified by its index")
	case c.value != nil && last.key != "" && c.was == "":
		fields = []string{"value", "after", "before"}
		if keyOf(c.node(), strings.Split(last.keys, "\x00")).key != last.key {
			return errors.New("value: the key differs from the key in the path")
		}
	case c.value != nil:
		fields = []string{"value", "was"}
	case c.was != "":
		fields = []string{"was"}
	default:
		return errors.New("expected value, insert, was or order")
	}
	for _, field := range n.kids {
		if name := string(field.name); name != "path" && !slices.Contains(fields, name) {
			return fmt.Errorf("%s: not allowed with the other fields", name)
		}
	}
	return nil
}

func parsePath(n *node) ([]step, error) {
	path, err := parseList(n, parseStep)
	switch {
	case err != nil:
		return nil, err
	case len(path) == 0:
		return nil, errors.New("is empty")
	case len(path) > maxPath:
		return nil, fmt.Errorf("longer than %d", maxPath)
	case path[0].selects():
		return nil, errors.New("begins with an element")
	}
	switch name := path[0].name; name {
	case "apiVersion", "kind":
		return nil, fmt.Errorf("%s must not be changed", name)
	case "metadata":
		if len(path) < 2 || path[1].name != "labels" && path[1].name != "annotations" {
			return nil, errors.New("only labels and annotations of metadata may be changed")
		}
	}
	return path, nil
}

// parseList reads a list of what parse reads.
func parseList[E any](n *node, parse func(*node) (E, error)) ([]E, error) {
	if !n.is('[') {
		return nil, errors.New("not an array")
	}
	list := make([]E, len(n.kids))
	for i, kid := range n.kids {
		var err error
		if list[i], err = parse(kid); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return list, nil
}

func parseStep(n *node) (step, error) {
	switch {
	case n.is('"'):
		return step{name: string(unquote(n.text))}, nil
	case n.is('{'):
		return parseSelector(n)
	default:
		return step{}, errors.New("no name and no element")
	}
}

func parseSelector(n *node) (step, error) {
	if !n.is('{') {
		return step{}, errors.New("not an element")
	}
	var s step
	for _, field := range n.kids {
		var err error
		switch string(field.name) {
		case "key":
			if s.key, s.keys = parseKey(field); s.key == "" {
				err = errors.New("not an object of scalars")
			}
		case "at":
			s.at, err = parseInt(field)
			s.at++
		default:
			err = errors.New("no such field")
		}
		if err != nil {
			return step{}, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	if (s.key == "") == (s.at == 0) {
		return step{}, errors.New("an element is identified by either key or at")
	}
	return s, nil
}

// maxKeyNames is how many names a key has at most.
const maxKeyNames = 16

func parseKey(n *node) (key, keys string) {
	var names []string
	if len(n.kids) > maxKeyNames {
		return "", ""
	}
	for _, kid := range n.kids {
		names = append(names, string(kid.name))
	}
	s := keyOf(n, names)
	return s.key, s.keys
}

// permutes reports whether places are 0 to n-1 in some order.
func permutes(places []int, n int) bool {
	for i, place := range slices.Sorted(slices.Values(places)) {
		if place != i {
			return false
		}
	}
	return len(places) == n
}

// parseInt reads an integer that is not negative.
func parseInt(n *node) (int, error) {
	i, err := strconv.ParseUint(string(n.text), 10, 31)
	if err != nil {
		return 0, errors.New("not an index")
	}
	return int(i), nil
}

func parseHash(n *node) (string, error) {
	if !n.is('"') {
		return "", errors.New("not a hash")
	}
	hash := string(unquote(n.text))
	if b, err := base64.RawURLEncoding.DecodeString(hash); err != nil || len(b) != hashSize {
		return "", errors.New("not a hash")
	}
	return hash, nil
}

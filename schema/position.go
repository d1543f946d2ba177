package schema

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// position is a place in a file, from 1.
type position struct{ line, column int }

// after returns the place after a text that begins at p.
func (p position) after(text []byte) position {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		p.line += bytes.Count(text, []byte("\n"))
		p.column, text = 1, text[i+1:]
	}
	p.column += utf8.RuneCount(text)
	return p
}

// inFile returns the place in the file of what is at p in a text that begins at begin.
func (p position) inFile(begin position) position {
	if p.line == 1 {
		p.column += begin.column - 1
	}
	p.line += begin.line - 1
	return p
}

// positions finds the places of fields in the text of one object.
type positions struct {
	root  *yaml.Node // nil if the text cannot be read so
	begin position   // of the document
}

// positions returns the places of fields in an object.
func (o *object) positions() *positions {
	p := &positions{root: o.node(), begin: o.begin}
	if o.item >= 0 && p.root != nil {
		if items, _ := entry(p.root, "items"); items != nil {
			if item, _ := entry(items, strconv.Itoa(o.item)); item != nil {
				p.root = item
			}
		}
	}
	return p
}

// node returns the node of a document, with lines and columns from its beginning. It is nil if
// the document is JSON that YAML does not have, such as surrogates.
func (d *document) node() *yaml.Node {
	if d.root == nil {
		var n yaml.Node
		if err := yaml.Unmarshal(d.text, &n); err == nil && len(n.Content) == 1 {
			d.root = n.Content[0]
		}
	}
	return d.root
}

// start returns where the object begins.
func (p *positions) start() position {
	if p.root == nil {
		return p.begin
	}
	return position{p.root.Line, p.root.Column}.inFile(p.begin)
}

// find returns the place of a path, such as spec.versions[0].schema or properties[a.b], and
// whether it is there. If it is not, the place is that of the nearest field above it. The
// place of a field is that of its name.
func (p *positions) find(path string) (at position, found bool) {
	if p.root == nil {
		return p.begin, false
	}
	best, nearest := len(path), p.root
	found = walk(p.root, p.root, path, func(at *yaml.Node, rest string) {
		if len(rest) < best {
			best, nearest = len(rest), at
		}
	})
	return position{nearest.Line, nearest.Column}.inFile(p.begin), found
}

// walk follows a path from a node, in every way in which it can be read: names may have dots and
// brackets. It calls reached
// with each node that it comes to, and with what is left of the path.
func walk(node, at *yaml.Node, rest string, reached func(at *yaml.Node, rest string)) bool {
	reached(at, rest)
	if rest == "" {
		return true
	}
	begin, end, closing := 0, 0, 0 // of a name, and what is after it
	if rest[0] == '[' {
		begin, closing = 1, 1
	} else if rest[0] == '.' {
		begin = 1
	}
	for end = begin; end <= len(rest); end++ {
		if closing == 1 && (end == len(rest) || rest[end] != ']') || closing == 0 && end < len(rest) && rest[end] != '.' && rest[end] != '[' {
			continue
		}
		after := rest[end+closing:]
		if after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}
		if child, key := entry(node, rest[begin:end]); child != nil && walk(child, key, after, reached) {
			return true
		}
	}
	return false
}

// entry returns the value of a name in a mapping, or of a number in a sequence, and the
// node that says where it is.
func entry(node *yaml.Node, name string) (value, at *yaml.Node) {
	for range 100 { // an alias may be of an alias
		if node.Kind != yaml.AliasNode {
			break
		}
		node = node.Alias
	}
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i]; name == keyOf(key) {
				return node.Content[i+1], key
			}
		}
	}
	return nil, nil
}

// keyOf returns the name that a key has in JSON.
func keyOf(key *yaml.Node) string {
	if key.Style == 0 && key.Tag != "" { // of YAML, plain
		return asName(key.Value)
	}
	return key.Value
}

// asName returns the name that a plain key of YAML has in JSON. YAML 1.1 takes some words
// for booleans: a property that is called n or on becomes one that is called false or true.
func asName(key string) string {
	switch key {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE":
		return "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE":
		return "false"
	}
	return key
}

package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a place in a file, from 1.
type position struct{ line, column int }

// positions finds the places of fields in the text of one object.
type positions struct {
	root  *yaml.Node // nil if the text cannot be read so
	begin position   // of the object, where root is nil
	above int        // lines of the file above the text
	index map[*yaml.Node]map[string]int
	left  int // steps of one search
}

// positions returns those of each of the n objects that objects returns.
func (d document) positions(n int) []*positions {
	var all []*positions
	for _, part := range d.parts() {
		var doc yaml.Node
		above := d.line - 1 + bytes.Count(d.text[:part.from], []byte("\n"))
		if yaml.Unmarshal(d.text[part.from:part.to], &doc) != nil || len(doc.Content) != 1 {
			continue
		}
		root := &positions{root: doc.Content[0], above: above}
		if kind := root.child(root.root, "kind"); kind != nil && strings.HasSuffix(kind.Value, "List") {
			if items := root.child(root.root, "items"); items != nil {
				for _, item := range items.Content {
					all = append(all, &positions{root: item, above: above})
				}
				continue
			}
		}
		all = append(all, root)
	}
	if len(all) != n { // it is not known which is which
		all = make([]*positions, n)
		for i := range all {
			all[i] = &positions{begin: position{d.line, 1}}
		}
	}
	return all
}

type span struct{ from, to int }

// parts returns where the values of a document are: one of YAML, or several of JSON.
func (d document) parts() (parts []span) {
	whole := []span{{0, len(d.text)}}
	if bytes.TrimSpace(d.text)[0] != '{' {
		return whole
	}
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for decoder.More() {
		from := int(decoder.InputOffset())
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return whole
		}
		parts = append(parts, span{from, int(decoder.InputOffset())})
	}
	return parts
}

// maxSteps bounds the search for a path: names may have dots and brackets, so that there
// may be many ways to read it.
const maxSteps = 10_000

// find returns the place of a path, such as spec.versions[0].schema or
// properties[a.b], and whether it is there; if not, it is the place of what is nearest
// above it. Of a field, that is where its name is.
func (p *positions) find(path string) (at position, found bool) {
	if p.root == nil {
		return p.begin, false
	}
	p.left = maxSteps
	best, nearest := len(path), p.root
	found = p.walk(p.root, p.root, path, func(at *yaml.Node, rest string) {
		if len(rest) < best {
			best, nearest = len(rest), at
		}
	})
	return position{p.above + nearest.Line, nearest.Column}, found
}

// walk follows a path from a node, in every way in which it can be read, and says to
// reach where it came.
func (p *positions) walk(node, at *yaml.Node, rest string, reached func(at *yaml.Node, rest string)) bool {
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
	for end = begin; end <= len(rest) && p.left > 0; end++ {
		if closing == 1 && (end == len(rest) || rest[end] != ']') || closing == 0 && end < len(rest) && rest[end] != '.' && rest[end] != '[' {
			continue
		}
		after := rest[end+closing:]
		if after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}
		p.left--
		if child, key := p.entry(node, rest[begin:end]); child != nil && p.walk(child, key, after, reached) {
			return true
		}
	}
	return false
}

func (p *positions) child(node *yaml.Node, name string) *yaml.Node {
	child, _ := p.entry(node, name)
	return child
}

// entry returns the value of a name in a mapping, or of a number in a sequence, and the
// node that says where it is.
func (p *positions) entry(node *yaml.Node, name string) (value, at *yaml.Node) {
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
		if i, ok := p.names(node)[name]; ok {
			return node.Content[i+1], node.Content[i]
		}
		if i, ok := p.names(node)["<<"]; ok {
			merged := []*yaml.Node{node.Content[i+1]}
			if merged[0].Kind == yaml.SequenceNode {
				merged = merged[0].Content
			}
			for _, from := range merged {
				if p.left--; p.left < 0 {
					break
				}
				if value, at := p.entry(from, name); value != nil {
					return value, at
				}
			}
		}
	}
	return nil, nil
}

// names returns where the names of a mapping are in its content.
func (p *positions) names(node *yaml.Node) map[string]int {
	if names, ok := p.index[node]; ok {
		return names
	}
	names := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		if _, twice := names[node.Content[i].Value]; !twice {
			names[node.Content[i].Value] = i
		}
	}
	if p.index == nil {
		p.index = map[*yaml.Node]map[string]int{}
	}
	p.index[node] = names
	return names
}

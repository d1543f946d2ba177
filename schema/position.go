package schema

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a place in a file, from 1.
type position struct{ line, column int }

// inFile returns the place in the file of what is at p in a text that begins at begin.
func (p position) inFile(begin position) position {
	if p.line == 1 {
		p.column += begin.column - 1
	}
	p.line += begin.line - 1
	return p
}

// positions has the places of the fields in one object.
type positions struct {
	document map[string]position // by the paths in the document, as plainPath writes them
	object   string              // the path of the object in the document
}

// positions returns the places of fields in an object.
func (o *object) positions() positions {
	if o.places == nil {
		o.places = map[string]position{"": o.begin}
		var n yaml.Node // JSON that is not YAML, such as surrogates, has no places
		if err := yaml.Unmarshal(o.text, &n); err == nil && len(n.Content) == 1 {
			o.addPlaces("", n.Content[0], n.Content[0])
		}
	}
	if o.item < 0 {
		return positions{document: o.places}
	}
	return positions{o.places, ".items." + strconv.Itoa(o.item)}
}

// addPlaces adds the places of a node and of what is in it. The place of a field is that of its
// name.
func (d *document) addPlaces(path string, name, value *yaml.Node) {
	if _, twice := d.places[path]; !twice || path == "" {
		d.places[path] = position{name.Line, name.Column}.inFile(d.begin)
	}
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	switch value.Kind {
	case yaml.SequenceNode:
		for i, item := range value.Content {
			d.addPlaces(path+"."+strconv.Itoa(i), item, item)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(value.Content); i += 2 {
			key := value.Content[i]
			d.addPlaces(path+"."+plainPath(nameInJSON(key)), key, value.Content[i+1])
		}
	}
}

// plainPath writes a path such as spec.versions[0].properties[a.b] with dots alone, because the
// errors of the server's decoder have no brackets.
func plainPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// find returns the place of a path, such as spec.versions[0].schema or properties[a.b], and whether
// the field exists. If it does not, the place is that of the nearest field above it.
func (p positions) find(path string) (at position, found bool) {
	if path != "" {
		path = "." + plainPath(path)
	}
	path = p.object + path
	for end := len(path); ; end = strings.LastIndexByte(path[:end], '.') {
		if at, ok := p.document[path[:end]]; ok {
			return at, end == len(path)
		}
	}
}

// nameInJSON returns the name that a key has in JSON. YAML 1.1 takes some plain words for booleans,
// so a property named n or on becomes one named false or true.
func nameInJSON(key *yaml.Node) string {
	if plain := key.Style == 0 && key.Tag != ""; !plain {
		return key.Value
	}
	switch key.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE":
		return "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE":
		return "false"
	}
	return key.Value
}

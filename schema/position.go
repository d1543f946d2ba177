package schema

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a place in a file, from 1.
type position struct{ line, column int }

// addPlaces adds the places of a node and of what is in it. The place of a field is that of its
// name.
func (d *document) addPlaces(path string, name, value *yaml.Node) {
	if _, twice := d.places[path]; !twice || path == "" {
		d.places[path] = position{d.line - 1 + name.Line, name.Column}
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
			d.addPlaces(path+"."+plainPath(key.Value), key, value.Content[i+1])
		}
	}
}

// plainPath writes a path such as spec.versions[0].properties[a.b] with dots alone, because the
// errors of the server's decoder have no brackets.
func plainPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// find returns the place of a path in an object, such as spec.versions[0].schema or properties[a.b],
// and whether the field exists. If it does not, the place is that of the nearest field above it.
func (o *object) find(path string) (at position, found bool) {
	if o.places == nil {
		o.places = map[string]position{"": {o.line, 1}}
		var n yaml.Node // JSON that is not YAML, such as surrogates, has no places
		if err := yaml.Unmarshal(o.text, &n); err == nil && len(n.Content) == 1 {
			o.addPlaces("", n.Content[0], n.Content[0])
		}
	}
	if path != "" {
		path = "." + plainPath(path)
	}
	if o.item >= 0 {
		path = ".items." + strconv.Itoa(o.item) + path
	}
	for end := len(path); ; end = strings.LastIndexByte(path[:end], '.') {
		if at, ok := o.places[path[:end]]; ok {
			return at, end == len(path)
		}
	}
}

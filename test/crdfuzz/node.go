package crdfuzz

import (
	"encoding/json"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The types of a schema.
const (
	scalars = "string string string integer integer number boolean intOrString"
	parents = "object object object map map array array set listMap listMap any embedded"
)

// Names of fields: few, so that they meet, and some that CEL writes differently.
const names = "a b c d a b c d a b c d name size if a-b a.b/c x__y namespace Kind ä"

// node makes the schema of a field, at most so deep.
func (m maker) node(depth int) object {
	kinds := scalars
	if depth > 0 {
		kinds += " " + parents
	}
	s := m.bare(m.word(kinds), depth)
	if m.rarely(5) {
		s["nullable"] = true
	}
	if m.rarely(30) {
		s["description"] = "what it is"
	}
	m.compositions(s)
	m.rules(s)
	if m.rarely(5) {
		s["default"] = plain(m.value(s, 100))
	}
	return s
}

// plain writes numbers as they are ordinarily written: a definition does not keep others.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err == nil {
		if err = utiljson.Unmarshal(text, &v); err == nil {
			return v
		}
	}
	return nil
}

// bare is a schema of a kind, with value validations.
func (m maker) bare(kind string, depth int) object {
	var s object
	switch kind {
	case "object":
		s = object{"type": "object"}
		m.properties(s, 1+m.Intn(4), depth)
		if m.rarely(6) {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
		if m.rarely(8) {
			s["x-kubernetes-map-type"] = m.word("atomic granular")
		}
	case "map":
		s = object{"type": "object", "additionalProperties": true}
		if m.often(5) {
			s["additionalProperties"] = m.node(depth - 1)
		}
		if m.rarely(8) {
			s["x-kubernetes-map-type"] = m.word("granular atomic")
		}
		if m.often(4) {
			s["maxProperties"] = int64(3)
		}
	case "array":
		s = object{"type": "array", "items": m.node(depth - 1)}
		if m.rarely(4) {
			s["x-kubernetes-list-type"] = "atomic"
		}
		if m.rarely(60) {
			s["uniqueItems"] = true
		}
	case "set":
		items := m.node(0)
		if depth > 1 && m.rarely(4) {
			items = m.bare(m.word("array object map"), 1)
			if items["type"] == "array" {
				items["x-kubernetes-list-type"] = "atomic"
			} else {
				items["x-kubernetes-map-type"] = "atomic"
			}
		}
		if m.often(20) {
			delete(items, "nullable")
		}
		s = object{"type": "array", "items": items, "x-kubernetes-list-type": "set"}
	case "listMap":
		s = object{"type": "array", "x-kubernetes-list-type": "map", "items": m.listMapItems(depth)}
		m.listMapKeys(s)
	case "any":
		s = object{"x-kubernetes-preserve-unknown-fields": true}
		if m.often(4) {
			s["type"] = "object"
		}
		if m.rarely(3) {
			m.properties(s, 1+m.Intn(2), depth)
		}
	case "embedded":
		s = object{"type": "object", "x-kubernetes-embedded-resource": true}
		if m.often(3) {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
		if m.rarely(2) {
			m.properties(s, 1+m.Intn(2), depth)
		}
		if m.rarely(4) {
			addField(s, one(m, "kind", "apiVersion"), object{"type": "string", "enum": []any{"Pod", "v1"}})
		}
		if m.rarely(5) {
			addField(s, "metadata", object{"type": "object", "properties": object{"name": object{"type": "string", "maxLength": int64(4)}}})
			s["required"] = []any{"metadata"}
		}
	case "intOrString":
		s = object{"x-kubernetes-int-or-string": true}
		either := []any{object{"type": "integer"}, object{"type": "string"}}
		switch m.Intn(6) {
		case 4:
			s["anyOf"] = either
		case 5:
			s["allOf"] = []any{object{"anyOf": either}}
		}
	default:
		s = object{"type": kind}
	}
	m.validations(s, s)
	if s["type"] == "array" && m.often(5) {
		s["maxItems"] = int64(3 + m.Intn(2))
	}
	return s
}

// properties gives a schema some properties.
func (m maker) properties(s object, n, depth int) {
	for range n {
		name := m.word(names)
		addField(s, name, m.node(depth-1))
		if m.rarely(4) {
			required, _ := s["required"].([]any)
			s["required"] = append(required, name)
		}
	}
	if m.rarely(20) {
		addField(s, "metadata", m.node(depth-1))
	}
}

func addField(s object, name string, f object) {
	properties, ok := s["properties"].(object)
	if !ok {
		properties = object{}
		s["properties"] = properties
	}
	properties[name] = f
}

func (m maker) listMapItems(depth int) object {
	items := object{"type": "object"}
	m.properties(items, 1+m.Intn(2), depth)
	return items
}

// listMapKeys chooses keys, and makes them scalars.
func (m maker) listMapKeys(s object) {
	items := s["items"].(object)
	var keys, required []any
	for _, name := range []string{"a", "k"}[:1+m.Intn(2)] {
		key := m.bare(m.word("string string integer boolean number"), 0)
		if m.rarely(15) {
			key = m.node(1)
		}
		switch m.Intn(4) {
		case 0, 1:
			required = append(required, name)
		case 2:
			key["default"] = plain(m.value(key, 100))
		}
		addField(items, name, key)
		keys = append(keys, name)
	}
	s["x-kubernetes-list-map-keys"] = keys
	if required != nil {
		items["required"] = required
	} else {
		delete(items, "required")
	}
}

// Patterns, of which some are met by the strings that are made.
var patterns = []string{"^a", "b", "^[a-z]+$", "^([a-z0-9]{2}-)*x$", "^.{2,4}$", "^[0-9]+%?$", "^$|a", "ä"}

const formats = "date-time date duration byte int32 int64 uuid uri email hostname ipv4 ipv6 cidr mac password float double k8s-short-name bsonobjectid nonsense"

// validations adds value validations that suit the type of a schema, to it or to one that
// is nested in it.
func (m maker) validations(s, into object) {
	kind, _ := s["type"].(string)
	if s["x-kubernetes-int-or-string"] == true {
		kind = m.word("string integer")
	}
	if m.rarely(60) {
		kind = m.word("string integer number boolean array object") // it does not suit
	}
	set := func(n int, keyword string, value any) {
		if m.rarely(n) {
			into[keyword] = value
		}
	}
	switch kind {
	case "string":
		set(8, "minLength", int64(m.Intn(4)))
		if m.often(3) {
			into["maxLength"] = int64(m.Intn(9))
		}
		set(8, "pattern", one(m, patterns...))
		set(8, "format", m.word(formats))
		set(8, "enum", []any{"a", "b", "abc", m.word("5 x a")})
	case "integer", "number":
		set(6, "minimum", m.bound())
		set(6, "maximum", m.bound())
		set(10, "exclusiveMinimum", true)
		set(10, "exclusiveMaximum", true)
		set(8, "multipleOf", one[any](m, int64(1), int64(2), int64(3), 0.5, 0.1, int64(0)))
		set(12, "format", m.word("int32 int64 float double nonsense"))
		set(10, "enum", []any{int64(1), int64(2), one[any](m, int64(5), 1.5, "x")})
	case "boolean":
		set(12, "enum", []any{true})
	case "array":
		set(8, "minItems", int64(m.Intn(3)))
		set(6, "maxItems", int64(m.Intn(4)))
		set(40, "enum", []any{[]any{}, []any{"a"}})
	case "object":
		set(8, "minProperties", int64(m.Intn(3)))
		set(8, "maxProperties", int64(m.Intn(4)))
		set(5, "required", []any{m.nameIn(s)})
		set(40, "enum", []any{object{}, object{"a": "b"}})
	}
	if s["nullable"] == true {
		if enum, ok := into["enum"].([]any); ok && m.rarely(2) {
			into["enum"] = append(enum, nil)
		}
	}
}

func (m maker) bound() any {
	return one[any](m, int64(0), int64(1), int64(2), int64(5), int64(-3), 1.5, 2.5, -0.5, int64(1)<<40)
}

// nameIn is the name of a property, or another one.
func (m maker) nameIn(s object) string {
	properties, _ := s["properties"].(object)
	if name, ok := m.key(properties); ok && m.often(12) {
		return name
	}
	return m.word(names)
}

// compositions adds allOf, anyOf, oneOf and not.
func (m maker) compositions(s object) {
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		if !m.rarely(10) || s[word] != nil {
			continue
		}
		var all []any
		for range 1 + m.Intn(3) {
			all = append(all, m.nested(s, 2))
		}
		s[word] = all
	}
	if m.rarely(16) {
		s["not"] = m.nested(s, 2)
	}
}

// nested is what a composition says of a schema.
func (m maker) nested(s object, depth int) object {
	out := object{}
	m.validations(s, out)
	if properties, _ := s["properties"].(object); len(properties) > 0 && depth > 0 {
		for range 1 + m.Intn(2) {
			name := m.nameIn(s)
			if p, ok := properties[name].(object); ok {
				addField(out, name, m.nested(p, depth-1))
			} else if m.rarely(4) {
				addField(out, name, object{"minLength": int64(1)})
			}
		}
	}
	if items, ok := s["items"].(object); ok && depth > 0 && m.rarely(2) {
		out["items"] = m.nested(items, depth-1)
	}
	if depth > 0 && m.rarely(12) {
		out[m.word("allOf anyOf oneOf")] = []any{m.nested(s, depth-1), m.nested(s, depth-1)}
	}
	if depth > 0 && m.rarely(12) {
		out["not"] = m.nested(s, depth-1)
	}
	if m.rarely(40) {
		// Not structural.
		switch word := m.word("type description nullable default x-kubernetes-list-type x-kubernetes-validations additionalProperties"); word {
		case "nullable":
			out[word] = true
		case "x-kubernetes-validations":
			out[word] = []any{m.rule(s)}
		case "additionalProperties":
			out[word] = object{"minLength": int64(1)}
		default:
			out[word] = "string"
		}
	}
	if len(out) == 0 || m.rarely(8) {
		out["required"] = []any{m.nameIn(s)}
		if t, _ := s["type"].(string); !strings.Contains("object", t) {
			delete(out, "required")
		}
	}
	return out
}

package crdfuzz

import (
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// definition makes a definition, as JSON.
func (m maker) definition(group string) object {
	var versions []any
	first := m.version(m.root())
	for i, name := range []string{"v1", "v1beta1", "v2alpha1"}[:one(m, 1, 2, 2, 3)] {
		v := clone(first)
		switch {
		case i > 0 && m.rarely(4):
			v = m.version(m.root()) // another one altogether
		case i > 0 && m.rarely(2):
			m.change(rootOf(v), 2+m.Intn(4))
		}
		v["name"], v["storage"] = name, false
		v["served"] = m.often(8)
		if m.rarely(4) {
			v["deprecated"] = true
			if m.rarely(2) {
				v["deprecationWarning"] = "do not use " + name
			}
		}
		versions = append(versions, v)
	}
	one(m, versions...).(object)["storage"] = true
	return object{
		"metadata": object{"name": "wilds." + group},
		"spec": object{
			"group": group, "scope": m.word("Namespaced Namespaced Cluster"), "versions": versions,
			"names": object{"plural": "wilds", "kind": "Wild"},
		},
	}
}

func rootOf(version object) object {
	return version["schema"].(object)["openAPIV3Schema"].(object)
}

// version is a version without its name.
func (m maker) version(root object) object {
	v := object{"schema": object{"openAPIV3Schema": root}}
	subresources := object{}
	if m.rarely(2) {
		subresources["status"] = object{}
	}
	if m.rarely(5) {
		scale := object{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
		for _, name := range []string{"spec", "status"} {
			if parent, ok := root["properties"].(object)[name].(object); ok && parent["type"] == "object" && parent["additionalProperties"] == nil {
				addField(parent, "replicas", object{"type": m.word("integer integer integer number")})
			}
		}
		if m.rarely(2) {
			scale["labelSelectorPath"] = ".status." + m.word(names)
		}
		subresources["scale"] = scale
	}
	if len(subresources) > 0 {
		v["subresources"] = subresources
	}
	if m.rarely(6) {
		v["selectableFields"] = []any{object{"jsonPath": ".spec." + m.word("a b c")}}
	}
	if m.rarely(6) {
		v["additionalPrinterColumns"] = []any{object{"name": "A", "type": m.word("string integer date"), "jsonPath": ".spec." + m.word("a b c")}}
	}
	return v
}

// root is the schema of an object.
func (m maker) root() object {
	s := object{"type": "object", "properties": object{}}
	for _, name := range []string{"spec", "status"} {
		if m.often(6) {
			f := m.node(3)
			if m.often(4) {
				f = m.bare("object", 3)
				m.rules(f)
				m.compositions(f)
			}
			addField(s, name, f)
		}
	}
	m.properties(s, m.Intn(3), 3)
	delete(s["properties"].(object), "metadata")
	if m.rarely(6) {
		addField(s, "metadata", object{"type": "object", "properties": object{m.word("name name name generateName labels"): m.bare("string", 0)}})
	}
	if m.rarely(8) {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	m.compositions(s)
	m.rules(s)
	m.keepFromComparing(s)
	return s
}

// keepFromComparing rewrites rules at the root that compare all with what it was: that is
// the metadata too, with managedFields and the resourceVersion, which only a server knows.
func (m maker) keepFromComparing(root object) {
	rules, _ := root["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		r := r.(object)
		if strings.Contains(text(r["messageExpression"]), "oldSelf") {
			delete(r, "messageExpression")
		}
		if !strings.Contains(text(r["rule"]), "oldSelf") {
			continue
		}
		delete(r, "optionalOldSelf")
		name := m.word("spec status")
		r["rule"] = fmt.Sprintf("has(self.%s) == has(oldSelf.%s)", name, name)
		if m.rarely(2) {
			r["rule"] = fmt.Sprintf("self.%s == oldSelf.%s", name, name)
		}
		if r["message"] != nil {
			r["message"] = r["rule"]
		}
	}
}

// change changes some things in a schema.
func (m maker) change(root object, times int) {
	for range times {
		s := m.somewhere(root)
		properties, _ := s["properties"].(object)
		switch m.Intn(8) {
		case 0:
			if name, ok := m.key(properties); ok {
				delete(properties, name)
			}
		case 1:
			if properties != nil {
				properties[m.word(names)] = m.node(1)
			}
		case 2:
			s["default"] = plain(m.value(s, 100))
		case 3:
			delete(s, "default")
		case 4:
			m.validations(s, s)
		case 5:
			if name, ok := m.key(properties); ok {
				properties[name] = m.node(1)
			}
		default:
			m.loosen(s, 3)
		}
	}
	delete(root, "default")
	m.keepFromComparing(root)
}

// somewhere is a schema in a schema, or that itself.
func (m maker) somewhere(s object) object {
	for m.often(4) {
		properties, _ := s["properties"].(object)
		var next object
		if name, ok := m.key(properties); ok {
			next, _ = properties[name].(object)
		} else if items, ok := s["items"].(object); ok {
			next = items
		} else if values, ok := s["additionalProperties"].(object); ok {
			next = values
		}
		if next == nil {
			break
		}
		s = next
	}
	return s
}

// The objections of a schema to a value.
var restrictions = []string{
	"required", "enum", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations",
}

// loosen takes restrictions away, each once in n times, everywhere in a schema.
func (m maker) loosen(s object, n int) {
	for _, word := range restrictions {
		if s[word] != nil && m.rarely(n) && !(s["x-kubernetes-int-or-string"] == true && (word == "anyOf" || word == "allOf")) {
			delete(s, word)
		}
	}
	if list := s["x-kubernetes-list-type"]; (list == "set" || list == "map") && m.rarely(n) {
		delete(s, "x-kubernetes-list-type")
		delete(s, "x-kubernetes-list-map-keys")
	}
	properties, _ := s["properties"].(object)
	for _, name := range sortedKeys(properties) {
		m.loosen(properties[name].(object), n)
	}
	for _, below := range []string{"items", "additionalProperties"} {
		if next, ok := s[below].(object); ok {
			m.loosen(next, n)
		}
	}
}

// earlier is what the definition may have been earlier: one that lets more pass.
func (m maker) earlier(definition object) object {
	out := clone(definition)
	for _, v := range out["spec"].(object)["versions"].([]any) {
		root := rootOf(v.(object))
		m.loosen(root, 2)
		if m.rarely(3) {
			m.change(root, 1+m.Intn(2))
		}
	}
	return out
}

// typed decodes the JSON of a definition. Lists and maps that are empty are not there: a
// client does not send them.
func typed(definition object) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := json.Marshal(definition)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	strict, err := kjson.UnmarshalStrict(text, crd)
	if err == nil && len(strict) > 0 {
		err = fmt.Errorf("%v: %s", strict, text)
	}
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(crd); err != nil {
		return nil, err
	}
	sent := &apiextensionsv1.CustomResourceDefinition{}
	return sent, json.Unmarshal(text, sent)
}

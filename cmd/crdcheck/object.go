package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// object is an object in a document.
type object struct {
	place
	metav1.TypeMeta
	name string // or the prefix of one that is generated

	text       []byte       // as it would be sent to the server: JSON or YAML
	before     int          // lines of the file before the text, if it is YAML
	asJSON     []byte       // the same as JSON
	node       *yamlv3.Node // of YAML
	duplicates []string     // keys of YAML that are there twice, and that the text no longer has
}

// gvk is what it says that it is; the group of one that cannot be read is empty.
func (o object) gvk() runtimeschema.GroupVersionKind {
	return runtimeschema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// String is how kubectl prints it.
func (o object) String() string {
	kind := strings.ToLower(o.Kind)
	if group := o.gvk().Group; group != "" {
		kind += "." + group
	}
	return kind + "/" + o.name
}

// add adds an object, or the items of one that is a List, also of one in a List.
func (d *document) add(o object, list metav1.TypeMeta) {
	if kjson.UnmarshalCaseSensitivePreserveInts(o.asJSON, &o.TypeMeta) != nil || o.asJSON[0] != '{' {
		d.others = append(d.others, o.place)
		return
	}
	if o.APIVersion == "" && o.Kind == "" && o.Item != "" {
		o.ofList(list)
	}
	items, isList := itemsOf(o.asJSON)
	if !isList {
		o.name = nameOf(o.asJSON)
		d.objects = append(d.objects, o)
		return
	}
	var lines []int
	nodes := itemsOfYAML(o.node)
	if o.node == nil {
		lines = itemLinesOfJSON(o.asJSON, o.Line)
	}
	for i, text := range items {
		item := object{place: o.place, text: text, asJSON: text}
		item.Item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", o.Item, i), ".")
		switch {
		case i < len(nodes):
			item.node, item.before, item.Line = nodes[i], d.line-1, d.line-1+nodes[i].Line
		case i < len(lines):
			item.Line = lines[i]
		}
		d.add(item, o.TypeMeta)
	}
}

// itemsOf returns the items of a List. Items that are null, as Go encodes those of an empty typed list, are
// none, as to kubectl (apimachinery/pkg/apis/meta/v1/unstructured/helpers.go, detectList).
func itemsOf(value []byte) (items []json.RawMessage, isList bool) {
	var list struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(value, &list) != nil || list.Items == nil || !strings.HasSuffix(list.Kind, "List") {
		return nil, false
	}
	return items, json.Unmarshal(list.Items, &items) == nil
}

// ofList says what an item is that does not, as the server sends those of a typed list
// (apimachinery/pkg/apis/meta/v1/unstructured/helpers.go, decodeToList). All that it has
// stays as it is, what is there twice too.
func (o *object) ofList(list metav1.TypeMeta) {
	o.APIVersion, o.Kind = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
	rest := bytes.TrimSpace(o.asJSON[1:])
	comma := ","
	if rest[0] == '}' {
		comma = ""
	}
	head, _ := json.Marshal(o.TypeMeta) // of strings, that cannot fail
	o.text = slices.Concat(head[:len(head)-1], []byte(comma), rest)
	o.asJSON = o.text
}

// nameOf returns the name of an object, or the prefix of one that is generated.
func nameOf(text []byte) string {
	var o struct {
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &o) // a fault in it is the server's to find
	return cmp.Or(o.Metadata.Name, o.Metadata.GenerateName)
}

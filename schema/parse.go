package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// maxRequest is the size of the largest request that the server reads
	// (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
	maxRequest = 3 << 20
	// maxFile bounds a file of definitions.
	maxFile = 64 << 20
	// maxDepth bounds how deep the JSON of a definition is nested. The server has no
	// such bound, but takes quadratic time to decode a schema within schemas.
	maxDepth = 512
)

// Parse reads one CustomResourceDefinition, of apiextensions.k8s.io/v1 or v1beta1, in
// YAML or JSON, and compiles it. See [ParseAll]; here it is an error if the file has no
// definition or several.
func Parse(data []byte) (*Definition, error) {
	definitions, err := ParseAll(data)
	if err != nil {
		return nil, err
	}
	if len(definitions) != 1 {
		return nil, fmt.Errorf("schema: there are %d CustomResourceDefinitions, not one", len(definitions))
	}
	return definitions[0], nil
}

// ParseAll reads all CustomResourceDefinitions of a file, in their order, and compiles
// them: the documents of YAML, the values of JSON, and the items of a List. A document
// without content is passed over; anything else that is not a definition is an error.
//
// Definitions are read strictly, as kubectl sends them: a field that is unknown or there
// twice is an error. A definition of v1beta1 is defaulted and converted to v1 as the
// server did when it still took them. See [New] for the rest. An error says in which
// document, and on which line that begins; errors of several definitions are joined.
//
// A file may have 64 MiB, and a definition 3 MiB in JSON, as much as a request to the
// server. Its JSON may be nested 512 deep.
func ParseAll(data []byte) ([]*Definition, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("schema: the file has %d bytes: the limit is %d", len(data), maxFile)
	}
	var definitions []*Definition
	var faults []error
	for _, doc := range split(data) {
		objects, err := doc.objects()
		for _, object := range objects {
			var d *Definition
			if d, err = parse(object); err != nil {
				faults = append(faults, fmt.Errorf("schema: document %d (line %d): %w", doc.number, doc.line, err))
				continue
			}
			definitions = append(definitions, d)
		}
		if len(objects) == 0 && err != nil {
			faults = append(faults, fmt.Errorf("schema: document %d (line %d): %w", doc.number, doc.line, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return definitions, nil
}

// document is a part of a file.
type document struct {
	number, line int // from 1
	text         []byte
}

// split cuts a file where YAML begins and ends documents, and leaves out those without
// content.
func split(data []byte) (docs []document) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	number, line, begin := 0, 0, 1
	var text []byte
	empty := true
	end := func() {
		if !empty {
			number++
			docs = append(docs, document{number: number, line: begin, text: text})
		}
		text, empty = nil, true
	}
	for l := range bytes.Lines(data) {
		line++
		if rest, ok := marker(l, "---"); ok {
			end()
			l = rest
		} else if _, ok := marker(l, "..."); ok {
			end()
			continue
		}
		if t := bytes.TrimSpace(l); empty && len(t) > 0 && t[0] != '#' && (l[0] != '%' || text != nil) {
			empty, begin = false, line
		}
		if !empty {
			text = append(text, l...)
		}
	}
	end()
	return docs
}

// marker says whether a line begins with a marker of YAML, and returns the rest.
func marker(line []byte, m string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(m))
	return rest, ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// objects returns the JSON of the objects in a document.
func (d document) objects() ([]json.RawMessage, error) {
	var values []json.RawMessage
	if d.text[0] == '{' || bytes.TrimSpace(d.text)[0] == '{' {
		decoder := json.NewDecoder(bytes.NewReader(d.text))
		for {
			var value json.RawMessage
			err := decoder.Decode(&value)
			if err == io.EOF {
				break
			}
			if err != nil {
				values = nil // it may be YAML
				break
			}
			values = append(values, value)
		}
	}
	if values == nil {
		value, err := yaml.YAMLToJSONStrict(d.text)
		if err != nil {
			return nil, err
		}
		if string(value) == "null" {
			return nil, nil
		}
		values = []json.RawMessage{value}
	}
	var objects []json.RawMessage
	for _, value := range values {
		if err := tooDeep(value); err != nil {
			return nil, err
		}
		items, isList, err := listItems(value)
		if err != nil {
			return nil, err
		}
		if isList {
			objects = append(objects, items...)
		} else {
			objects = append(objects, value)
		}
	}
	return objects, nil
}

// listItems returns the items of a List, as kubectl prints it, and of a
// CustomResourceDefinitionList.
func listItems(value []byte) (items []json.RawMessage, isList bool, err error) {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &list.TypeMeta); err != nil {
		return nil, false, err
	}
	switch {
	case list.Kind == "List" && list.APIVersion == "v1":
	case list.Kind == "CustomResourceDefinitionList" && isDefinitionVersion(list.APIVersion):
	default:
		return nil, false, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(value, &list)
	for i, item := range list.Items {
		var t metav1.TypeMeta
		if kjson.UnmarshalCaseSensitivePreserveInts(item, &t) == nil && t == (metav1.TypeMeta{}) && list.Kind != "List" {
			// The items of a typed list need not say what they are.
			var object map[string]any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(item, &object); err != nil || object == nil {
				return nil, true, fmt.Errorf("items[%d] is not an object", i)
			}
			object["apiVersion"], object["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
			if list.Items[i], err = json.Marshal(object); err != nil {
				return nil, true, err
			}
		}
	}
	return list.Items, true, err
}

func isDefinitionVersion(apiVersion string) bool {
	return apiVersion == apiextensionsv1.SchemeGroupVersion.String() || apiVersion == apiextensionsv1beta1.SchemeGroupVersion.String()
}

// parse compiles a definition from its JSON.
func parse(object []byte) (*Definition, error) {
	crd, strict, err := decodeDefinition(object)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	return New(crd)
}

// decodeDefinition decodes the JSON of a definition, and converts it to v1. The strict
// errors are fields that are unknown or there twice.
func decodeDefinition(object []byte) (crd *apiextensionsv1.CustomResourceDefinition, strict []error, err error) {
	if len(object) > maxRequest {
		return nil, nil, fmt.Errorf("it has %d bytes: the limit is %d", len(object), maxRequest)
	}
	var t metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &t); err != nil {
		return nil, nil, err
	}
	if t.Kind != "CustomResourceDefinition" || !isDefinitionVersion(t.APIVersion) {
		return nil, nil, fmt.Errorf("it is a %q of %q, not a CustomResourceDefinition of %s or %s",
			t.Kind, t.APIVersion, apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion)
	}
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if t.APIVersion == apiextensionsv1.SchemeGroupVersion.String() {
		strict, err := kjson.UnmarshalStrict(object, crd)
		return crd, strict, err
	}
	old, internal := &apiextensionsv1beta1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if strict, err = kjson.UnmarshalStrict(object, old); err != nil {
		return nil, strict, err
	}
	apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(old)
	if err := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old, internal, nil); err != nil {
		return nil, strict, err
	}
	err = apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(internal, crd, nil)
	return crd, strict, err
}

// tooDeep returns an error if JSON is nested too deep.
func tooDeep(text []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

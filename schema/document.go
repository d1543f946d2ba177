package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/crd"
)

// document is a document of YAML or JSON in a file.
type document struct {
	line   int // of its marker, or 1
	text   []byte
	places map[string]position // by their paths, as plainPath writes them; see find
}

// object is an object in a document.
type object struct {
	*document
	item       int // in the items of a List; -1 if the document is not a List
	json       []byte
	duplicates []error // for each key that a mapping of YAML has twice, a lineError
}

// lineError is an error of the YAML parser.
type lineError struct {
	line    int // in the file
	message string
}

func (e lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.message) }

// eachObject calls f with each object of a file. It goes on after an error. All errors,
// its own and those of f, are joined, and each names its document or item.
func eachObject(data []byte, f func(*object) error) error {
	var errs []error
	add := func(where string, err error) {
		all := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all = joined.Unwrap()
		}
		for _, err := range all {
			errs = append(errs, fmt.Errorf("schema: %s: %w", where, err))
		}
	}
	for line, text := range crd.Documents(data) {
		d := &document{line: line, text: text}
		objects, err := d.objects()
		if err != nil {
			add(fmt.Sprintf("the document of line %d", line), err)
		}
		for i := range objects {
			o := &objects[i]
			if err := f(o); err != nil && o.item < 0 {
				add(fmt.Sprintf("the document of line %d", line), err)
			} else if err != nil {
				at, _ := o.find("")
				add(fmt.Sprintf("items[%d] of line %d", o.item, at.line), err)
			}
		}
	}
	return errors.Join(errs...)
}

// objects returns the objects in a document: itself, or the items of a List.
func (d *document) objects() ([]object, error) {
	value, duplicates, err := d.json()
	if err != nil {
		return nil, err
	}
	if string(value) == "null" {
		return nil, nil
	}
	items, isList, err := listItems(value)
	if err != nil {
		return nil, err
	}
	if !isList {
		return []object{{document: d, item: -1, json: value, duplicates: duplicates}}, nil
	}
	objects := make([]object, len(items))
	for i, item := range items {
		objects[i] = object{document: d, item: i, json: item}
	}
	return objects, errors.Join(duplicates...)
}

// json returns the document as JSON, and the keys that its YAML has twice.
func (d *document) json() (value []byte, duplicates []error, err error) {
	if text := bytes.TrimSpace(d.text); json.Valid(text) {
		return text, nil, nil
	}
	value, strictErr := sigsyaml.YAMLToJSONStrict(d.text)
	if strictErr != nil {
		if value, err = sigsyaml.YAMLToJSON(d.text); err != nil {
			return nil, nil, d.lineError(err.Error())
		}
		for _, message := range yamlWarnings(strictErr.Error()) {
			duplicates = append(duplicates, d.lineError(message))
		}
	}
	return value, duplicates, d.readToEnd()
}

// readToEnd reads a document of YAML to its end, because the functions that make JSON of YAML
// silently ignore a second one. It may follow without a marker: after {a: b}, or where the text is
// indented less than its first line.
func (d *document) readToEnd() error {
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	var node yaml.Node
	if err := decoder.Decode(&node); err == io.EOF {
		return nil
	} else if err != nil {
		return d.lineError(err.Error())
	}
	if err := decoder.Decode(&node); err != io.EOF {
		return errors.New("unexpected content after the end of the YAML document")
	}
	return nil
}

// lineInError is how an error of the YAML parser about a line begins.
var lineInError = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// lineError returns an error of the YAML parser with its line in the file.
func (d *document) lineError(message string) error {
	m := lineInError.FindStringSubmatch(message)
	if m == nil {
		return lineError{d.line, message}
	}
	n, _ := strconv.Atoi(m[1]) // digits; if there are too many, only the line is wrong
	return lineError{d.line - 1 + n, message[len(m[0]):]}
}

// listItems returns the items of a List, as kubectl prints it.
func listItems(value []byte) (items []json.RawMessage, isList bool, err error) {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &list.TypeMeta); err != nil {
		return nil, false, err
	}
	if list.Kind != "List" || list.APIVersion != "v1" {
		return nil, false, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(value, &list)
	return list.Items, true, err
}

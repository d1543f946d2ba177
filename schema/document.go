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

// document is a part of a file: a document of YAML or JSON.
type document struct {
	number int      // from 1
	begin  position // of the text, in the file
	text   []byte
	places map[string]position // see positions
}

// object is an object in a document.
type object struct {
	*document
	item       int // in the items of a List; -1 if the document is not a List
	json       []byte
	duplicates []error // each is a duplicate
}

// duplicate is a key that a mapping of YAML has twice. JSON would keep one of both.
type duplicate struct {
	line    int // in the file
	message string
}

func (d duplicate) Error() string { return fmt.Sprintf("line %d: %s", d.line, d.message) }

// eachObject calls f with each object of a file. It goes on after an error. All errors,
// its own and those of f, are joined, and each names its document or item.
func eachObject(data []byte, f func(*object) error) error {
	var errs []error
	add := func(where string, at position, err error) {
		all := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all = joined.Unwrap()
		}
		for _, err := range all {
			errs = append(errs, fmt.Errorf("schema: %s (line %d): %w", where, at.line, err))
		}
	}
	for _, d := range split(data) {
		where := fmt.Sprintf("document %d", d.number)
		objects, err := d.objects()
		if err != nil {
			add(where, d.begin, err)
		}
		for i := range objects {
			o := &objects[i]
			if err := f(o); err != nil && o.item < 0 {
				add(where, d.begin, err)
			} else if err != nil {
				at, _ := o.positions().find("")
				add(fmt.Sprintf("%s, items[%d]", where, o.item), at, err)
			}
		}
		d.places = nil // they may be large
	}
	return errors.Join(errs...)
}

// leading matches what may come before the content of a document: blank lines and comments.
var leading = regexp.MustCompile(`^(?:[ \t]*(?:#.*)?(?:\n|\z))+`)

// split cuts a file into its documents. It leaves out those without content.
func split(data []byte) (docs []*document) {
	// A carriage return alone ends a line of YAML too.
	data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	begin := position{1, 1}
	for line, text := range crd.Documents(data) {
		begin.line = line
		head := leading.Find(text)
		if lines := bytes.Count(head, []byte("\n")); lines > 0 {
			begin = position{line + lines, 1}
		}
		if text = text[len(head):]; len(text) > 0 {
			docs = append(docs, &document{number: len(docs) + 1, begin: begin, text: text})
		}
		begin.column = len("---") + 1 // all but the first document follow a marker
	}
	return docs
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
			return nil, nil, d.inFile(err)
		}
		for _, text := range yamlWarnings(strictErr.Error()) {
			found := duplicate{d.begin.line, text}
			if m := lineInError.FindStringSubmatch(text); m != nil {
				n, _ := strconv.Atoi(m[2]) // digits; if there are too many, only the line is wrong
				found = duplicate{d.begin.line - 1 + n, text[len(m[0]):]}
			}
			duplicates = append(duplicates, found)
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
		return d.inFile(err)
	}
	if err := decoder.Decode(&node); err != io.EOF {
		return errors.New("unexpected content after the end of the YAML document")
	}
	return nil
}

// lineInError is how an error of the YAML parser about a line begins.
var lineInError = regexp.MustCompile(`^(yaml: )?line (\d+): `)

// inFile makes the line in an error of the YAML parser that of the file.
func (d *document) inFile(err error) error {
	m := lineInError.FindStringSubmatch(err.Error())
	if m == nil || d.begin.line == 1 {
		return err
	}
	n, _ := strconv.Atoi(m[2])
	return fmt.Errorf("%sline %d: %s", m[1], d.begin.line-1+n, err.Error()[len(m[0]):])
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

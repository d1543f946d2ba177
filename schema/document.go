package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// maxFile bounds a file of definitions.
	maxFile = 64 << 20
	// maxDepth bounds how deep the JSON of a definition is nested. The server has no
	// such bound, but takes quadratic time to decode a schema within schemas.
	maxDepth = 512
)

// document is a part of a file: a document of YAML, or one value of JSON.
type document struct {
	number int      // from 1
	begin  position // of the text, in the file
	text   []byte
	isJSON bool
	err    error      // why there is nothing to read
	root   *yaml.Node // see node
}

// object is an object in a document.
type object struct {
	*document
	item  int // in the items of a List; -1 if the document is not a List
	json  []byte
	twice []repeated
}

// repeated is a name that a mapping of YAML has twice. A JSON reader keeps one of both, and
// says nothing.
type repeated struct {
	line    int // in the file
	message string
}

func (r repeated) Error() string { return fmt.Sprintf("line %d: %s", r.line, r.message) }

// eachObject calls f with each object of a file. It goes on after an error. All errors,
// its own and those of f, are joined, and each says which document or item it is about.
func eachObject(data []byte, f func(*object) error) error {
	if len(data) > maxFile {
		return fmt.Errorf("schema: the file has %d bytes: the limit is %d", len(data), maxFile)
	}
	var errs []error
	add := func(where string, at position, err error) {
		for _, err := range separate(err) {
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
				add(fmt.Sprintf("%s, items[%d]", where, o.item), o.positions().start(), err)
			}
		}
		d.root = nil // it may be large
	}
	return errors.Join(errs...)
}

// separate takes joined errors apart.
func separate(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		errs = append(errs, separate(err)...)
	}
	return errs
}

// split cuts a file into its documents. It leaves out those without content.
func split(data []byte) (docs []*document) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var open *document
	line, from, to := 0, 0, 0
	end := func() {
		if open != nil {
			open.text = data[from:to]
			docs = append(docs, open.values()...)
			open = nil
		}
	}
	for l := range bytes.Lines(data) {
		line++
		begin, column := to, 1
		if rest, ok := marker(l, "---"); ok {
			end()
			begin, column = to+len(l)-len(rest), 1+len(l)-len(rest)
			l = rest
		} else if _, ok := marker(l, "..."); ok {
			end()
			to += len(l)
			continue
		}
		to = begin + len(l)
		if t := bytes.TrimSpace(l); open == nil && len(t) > 0 && t[0] != '#' && l[0] != '%' {
			open = &document{begin: position{line, column}}
			from = begin
		}
	}
	end()
	for i, d := range docs {
		d.number = i + 1
	}
	return docs
}

// marker reports whether a line begins with a marker of YAML, and returns the rest.
func marker(line []byte, m string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(m))
	return rest, ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// values cuts a document that is a stream of JSON values into one document for each. If
// the first of them is not JSON, the document is YAML. If a later one is not, that is an
// error: nothing in a file may be passed over in silence. Lines of comments may be between
// the values, as before the first.
func (d *document) values() []*document {
	if bytes.TrimSpace(d.text)[0] != '{' {
		return []*document{d}
	}
	var values []*document
	rest, at := d.text, d.begin
	skip := func(n int) {
		at = at.after(rest[:n])
		rest = rest[n:]
	}
	for {
		skip(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n")))
		if len(rest) == 0 {
			return values
		}
		if rest[0] == '#' && len(values) > 0 {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			skip(len(line))
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			if len(values) == 0 {
				return []*document{d}
			}
			err = fmt.Errorf("only JSON may follow JSON: %w", err)
			return append(values, &document{begin: at, err: err})
		}
		n := int(decoder.InputOffset())
		values = append(values, &document{begin: at, text: rest[:n], isJSON: true})
		skip(n)
	}
}

// objects returns the objects in a document: itself, or the items of a List.
func (d *document) objects() ([]object, error) {
	value, twice, err := d.json()
	if err != nil {
		return nil, err
	}
	if string(value) == "null" {
		return nil, nil
	}
	if err := tooDeep(value); err != nil {
		return nil, err
	}
	items, isList, err := listItems(value)
	if err != nil {
		return nil, err
	}
	if !isList {
		return []object{{document: d, item: -1, json: value, twice: twice}}, nil
	}
	objects := make([]object, len(items))
	for i, item := range items {
		objects[i] = object{document: d, item: i, json: item}
	}
	if len(twice) == 0 {
		return objects, nil
	}
	begin := make([]int, len(objects))
	for i := range objects {
		begin[i] = objects[i].positions().start().line
	}
	var beside []error // in no item
	for _, r := range twice {
		after := sort.SearchInts(begin, r.line+1) // the first item that begins after it
		if after == 0 {
			beside = append(beside, r)
			continue
		}
		o := &objects[after-1]
		o.twice = append(o.twice, r)
	}
	return objects, errors.Join(beside...)
}

// json returns the document as JSON, and the names that its YAML has twice.
func (d *document) json() (value []byte, twice []repeated, err error) {
	if d.err != nil || d.isJSON {
		return d.text, nil, d.err
	}
	value, strictErr := sigsyaml.YAMLToJSONStrict(d.text)
	if strictErr != nil {
		if value, err = sigsyaml.YAMLToJSON(d.text); err != nil {
			return nil, nil, d.rebase(err)
		}
		for _, text := range yamlWarnings(strictErr.Error()) {
			r := repeated{d.begin.line, text}
			if m := inLine.FindStringSubmatch(text); m != nil {
				n, _ := strconv.Atoi(m[2]) // it has digits only; of too many, nothing is lost but the line
				r = repeated{d.begin.line - 1 + n, text[len(m[0]):]}
			}
			twice = append(twice, r)
		}
	}
	return value, twice, d.reachEnd()
}

// reachEnd reads a document of YAML to its end. The functions that make JSON of YAML read
// only the first document of a text, and there may be another that no marker announces:
// what follows {a: b}, or what is indented less than the first line.
func (d *document) reachEnd() error {
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case err == io.EOF:
		return nil
	case err != nil:
		return d.rebase(err)
	}
	if len(first.Content) == 1 {
		d.root = first.Content[0]
	}
	err := decoder.Decode(&second)
	switch m := noEnd.FindStringSubmatch(fmt.Sprint(err)); {
	case err == io.EOF:
		return nil
	case m != nil:
		// The parser counts these lines from 0, and leaves out line 0.
		n, _ := strconv.Atoi(m[1])
		return fmt.Errorf("the YAML ends before line %d, but there is more", d.begin.line+n)
	case err == nil:
		return fmt.Errorf("the YAML ends before line %d, but there is more", d.begin.line-1+second.Line)
	}
	return d.rebase(err)
}

// How the YAML parser says that a document is over where the text goes on, and how it
// begins a message about a line.
var (
	noEnd  = regexp.MustCompile(`^yaml: (?:line (\d+): )?did not find expected <document start>$`)
	inLine = regexp.MustCompile(`^(yaml: )?line (\d+): `)
)

// rebase makes the line in an error of the YAML parser that of the file.
func (d *document) rebase(err error) error {
	m := inLine.FindStringSubmatch(err.Error())
	if m == nil || d.begin.line == 1 {
		return err
	}
	n, _ := strconv.Atoi(m[2])
	return fmt.Errorf("%sline %d: %s", m[1], d.begin.line-1+n, err.Error()[len(m[0]):])
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
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &list); err != nil {
		return nil, true, err
	}
	for i, item := range list.Items {
		var t metav1.TypeMeta
		if list.Kind == "List" || kjson.UnmarshalCaseSensitivePreserveInts(item, &t) != nil || t != (metav1.TypeMeta{}) {
			continue
		}
		// The items of a typed list need not say what they are.
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(item), []byte("{"))
		if !ok {
			continue // null
		}
		head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"CustomResourceDefinition"`, list.APIVersion)
		if rest = bytes.TrimSpace(rest); rest[0] != '}' {
			head = append(head, ',')
		}
		list.Items[i] = append(head, rest...)
	}
	return list.Items, true, nil
}

func isDefinitionVersion(apiVersion string) bool {
	return apiVersion == apiextensionsv1.SchemeGroupVersion.String() || apiVersion == apiextensionsv1beta1.SchemeGroupVersion.String()
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

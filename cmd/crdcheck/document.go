package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"sort"
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/crd"
)

// document is a part of a file: what is between two lines of --- or of ... .
type document struct {
	file    string
	line    int // on which its text begins
	objects []object
	others  []place // not objects, such as the list of a JSON patch
	unread  []byte  // the rest, which cannot be read
	err     error   // why, and where
}

// place is where something is.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Item string `json:"item,omitempty"` // such as items[3], in a List
}

func (p place) String() string {
	if p.Item != "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Item)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// documents returns the documents of a file that are not empty.
func (f file) documents() iter.Seq[document] {
	return func(yield func(document) bool) {
		for line, text := range crd.Documents(f.data) {
			d := document{file: f.name, line: line}
			if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || !d.readJSON(text) {
				d.readYAML(text)
			}
			if (len(d.objects)+len(d.others) > 0 || d.err != nil) && !yield(d) {
				return
			}
		}
	}
}

// readJSON reads JSON. It returns false if the text does not begin with any.
func (d *document) readJSON(body []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(body))
	line, end := d.line, 0
	for n := 0; ; n++ {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if err == io.EOF {
			return true
		}
		if err != nil {
			if n == 0 {
				return false
			}
			rest := body[end:]
			d.unread = rest
			var syntax *json.SyntaxError
			if errors.As(json.Unmarshal(rest, &value), &syntax) { // its offset is that in the rest
				rest = rest[:min(int(syntax.Offset), len(rest))]
			}
			line += bytes.Count(bytes.TrimRight(rest, " \t\r\n"), []byte("\n"))
			d.err = fmt.Errorf("%s: json: %w", place{File: d.file, Line: line}, err)
			return true
		}
		begin := int(decoder.InputOffset()) - len(value)
		line += bytes.Count(body[end:begin], []byte("\n"))
		d.add(object{place: place{File: d.file, Line: line}, text: value, asJSON: value}, metav1.TypeMeta{})
		end = begin + len(value)
		line += bytes.Count(value, []byte("\n"))
	}
}

// leadingLines is the number of lines before what is not space.
func leadingLines(text []byte) int {
	return bytes.Count(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))], []byte("\n"))
}

// itemLinesOfJSON returns the lines on which the items of a List begin.
func itemLinesOfJSON(list []byte, line int) (lines []int) {
	decoder := json.NewDecoder(bytes.NewReader(list))
	var skipped json.RawMessage
	decoder.Token() // {; that it can be read is known
	for decoder.More() {
		if key, _ := decoder.Token(); key != "items" {
			if decoder.Decode(&skipped) != nil {
				return nil
			}
			continue
		}
		decoder.Token() // [
		for end := 0; decoder.More(); {
			if decoder.Decode(&skipped) != nil {
				return nil
			}
			begin := int(decoder.InputOffset()) - len(skipped)
			line += bytes.Count(list[end:begin], []byte("\n"))
			lines = append(lines, line)
			end = begin
		}
		return lines
	}
	return nil
}

// readYAML reads a document of YAML.
func (d *document) readYAML(body []byte) {
	// The server reads YAML with this one, as kubectl does. It stops where the document
	// ends, whatever follows; and knows no lines.
	value, err := yaml.YAMLToJSON(body)
	var root, rest yamlv3.Node
	if decoder := yamlv3.NewDecoder(bytes.NewReader(body)); err == nil && decoder.Decode(&root) == nil {
		if err = decoder.Decode(&rest); err == io.EOF {
			err = nil
		} else if err == nil {
			err = errors.New("yaml: there is more after the end of the document")
		}
	}
	line := d.line + leadingLines(body)
	if err != nil {
		text := shiftLines(err.Error(), d.line-1)
		if found := yamlErrorLine.FindStringSubmatch(text); found != nil {
			line, _ = strconv.Atoi(found[1])
			text = "yaml: " + text[len(found[0]):]
		}
		d.unread = body
		if bytes.Contains(d.unread, []byte("{{")) {
			text += "\nIt looks like a template: check what helm template prints"
		}
		d.err = fmt.Errorf("%s: %s", place{File: d.file, Line: line}, text)
		return
	}
	if string(value) == "null" {
		return
	}
	var node *yamlv3.Node
	if len(root.Content) > 0 {
		node = root.Content[0]
		line = d.line - 1 + node.Line
	}
	first := len(d.objects)
	text := body
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		text = append([]byte("--- "), body...) // to the server, it would be JSON without
	}
	d.add(object{place: place{File: d.file, Line: line}, text: text, asJSON: value, before: d.line - 1, node: node}, metav1.TypeMeta{})
	if items := d.objects[first:]; len(items) > 0 && items[0].Item != "" {
		if _, err := yaml.YAMLToJSONStrict(body); err != nil {
			assignDuplicates(items, shiftLines(err.Error(), d.line-1))
		}
	}
}

// itemsOfYAML returns the items of a List, which may be nil.
func itemsOfYAML(list *yamlv3.Node) []*yamlv3.Node {
	for i := 0; list != nil && i+1 < len(list.Content); i += 2 {
		if list.Content[i].Value == "items" {
			return list.Content[i+1].Content
		}
	}
	return nil
}

// yamlLine is how errors of YAML say where, yamlErrorLine is that at the beginning, and
// yamlDuplicate is what they say of a key that is there twice.
var (
	yamlLine      = regexp.MustCompile(`(?m)((?:^\s*|yaml: )line )(\d+):`)
	yamlErrorLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: line (\d+): `)
	yamlDuplicate = regexp.MustCompile(`(?m)^\s*(line (\d+): key .* already set in map)$`)
)

// shiftLines adds to the lines that errors of YAML have, which are those of the document.
func shiftLines(text string, by int) string {
	return yamlLine.ReplaceAllStringFunc(text, func(where string) string {
		parts := yamlLine.FindStringSubmatch(where)
		line, _ := strconv.Atoi(parts[2])
		return fmt.Sprintf("%s%d:", parts[1], line+by)
	})
}

// assignDuplicates gives the items of a List those of the errors that are theirs.
func assignDuplicates(items []object, text string) {
	for _, found := range yamlDuplicate.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(found[2])
		at := max(sort.Search(len(items), func(i int) bool { return items[i].Line > line })-1, 0)
		items[at].duplicates = append(items[at].duplicates, found[1])
	}
}

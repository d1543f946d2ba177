package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/schema/rehearse"
)

// maxStored is the size of the largest object, as text. The API server reads 3 MiB of JSON.
const maxStored = 16 << 20

// stored reads objects one after another, so that a snapshot may be larger than the memory: values
// of JSON, or documents of YAML, which may be Lists as kubectl get prints them.
type stored struct {
	name  string
	yield func(rehearse.Object, error) bool
	ended bool // the caller has enough
}

var errEmpty = errors.New("the input is empty")

// readStored calls yield with each object, and with what cannot be read, until that returns false. The
// object of an error has no text, or a key that is there twice.
func readStored(name string, in io.Reader, yield func(rehearse.Object, error) bool) {
	s := &stored{name: name, yield: yield}
	r := bufio.NewReader(in)
	first, err := peek(r)
	switch {
	case err == io.EOF:
		s.fail(0, errEmpty)
	case err != nil:
		s.fail(0, err)
	case first >= 0xFE: // of which the reader of YAML would read one document, and drop the others
		s.fail(0, errors.New("the input is in UTF-16: want JSON or YAML in UTF-8"))
	case first == '{' || first == '[':
		s.json(r)
	default:
		s.yaml(r)
	}
}

// peek returns the first character that is not space, and leaves it there.
func peek(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if bytes.IndexByte([]byte(" \t\r\n\xEF\xBB\xBF"), c) < 0 {
			return c, r.UnreadByte()
		}
	}
}

// give yields an object, or the items of one that is a List.
func (s *stored) give(where string, text []byte, err error) {
	items, isList := itemsOf(text)
	if !isList {
		s.ended = s.ended || !s.yield(rehearse.Object{Where: where, Text: text}, err)
		return
	}
	if err != nil { // a key is there twice, in which item, the error does not tell
		s.give(where, nil, err)
	}
	for i, item := range items {
		s.give(fmt.Sprintf("%s: items[%d]", where, i), item, nil)
	}
}

func (s *stored) fail(line int, err error) {
	where := s.name
	if line > 0 {
		where = fmt.Sprintf("%s:%d", s.name, line)
	}
	s.give(where, nil, err)
}

// limited ends a read that takes too much for one object.
type limited struct {
	io.Reader
	left int
}

var errTooLarge = fmt.Errorf("an object has more than %d MiB", maxStored>>20)

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.Reader.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// json reads values of JSON. The items of a List are read one by one.
func (s *stored) json(r io.Reader) {
	source := &limited{r, maxStored}
	decoder := json.NewDecoder(source)
	for number := 1; !s.ended; number++ {
		source.left = maxStored
		where := fmt.Sprintf("%s: document %d", s.name, number)
		token, err := decoder.Token()
		if err == io.EOF {
			return
		}
		if err == nil && token != json.Delim('{') {
			err = fmt.Errorf("%v is not an object", token)
		}
		if err == nil {
			err = s.jsonObject(where, source, decoder)
		}
		if err != nil {
			s.give(where, nil, fmt.Errorf("after byte %d: %w", decoder.InputOffset(), unexpected(err)))
			return
		}
	}
}

// unexpected returns the error of a read within a document.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// jsonObject reads the members of an object, and yields what it has in items, or itself.
func (s *stored) jsonObject(where string, source *limited, decoder *json.Decoder) error {
	object := []byte("{")
	items := -1
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if name != "items" {
			if err := decoder.Decode(&value); err != nil {
				return err
			}
			key, _ := json.Marshal(name)
			object = append(append(append(append(object, key...), ':'), value...), ',')
			if len(object) > maxStored {
				return errTooLarge
			}
			continue
		}
		if items >= 0 {
			return errors.New("items is there twice")
		}
		items = 0
		token, err := decoder.Token()
		if err == nil && token == nil { // null: see itemsOf
			continue
		}
		if err != nil || token != json.Delim('[') {
			return errors.Join(err, errors.New("items is not a list"))
		}
		for ; decoder.More(); items++ {
			source.left = maxStored
			if err := decoder.Decode(&value); err != nil {
				return fmt.Errorf("items[%d]: %w", items, unexpected(err))
			}
			if s.give(fmt.Sprintf("%s: items[%d]", s.name, items), bytes.Clone(value), nil); s.ended {
				return nil
			}
		}
		if _, err := decoder.Token(); err != nil { // ]
			return err
		}
	}
	if _, err := decoder.Token(); err != nil { // }
		return err
	}
	object = append(bytes.TrimSuffix(object, []byte(",")), '}')
	if items >= 0 {
		return checkList(object)
	}
	s.give(where, object, nil)
	return nil
}

// yamlDocument is a document of YAML that is being read. Of one with items at the root, these are
// read one by one: each begins with a dash, all in the same column, and goes on with what is
// indented by more.
type yamlDocument struct {
	line    int // on which it begins
	rest    []byte
	isList  bool
	inItems bool
	dash    int // the column of the dashes, -1 before the first one

	itemLine int
	item     []byte
}

// yaml reads documents of YAML line by line.
func (s *stored) yaml(r *bufio.Reader) {
	d := yamlDocument{line: 1}
	for line := 1; !s.ended; line++ {
		l, err := readLine(r)
		if len(d.rest)+len(d.item)+len(l) > maxStored {
			err = errTooLarge
		}
		switch {
		case err != nil && err != io.EOF:
			s.fail(line, err)
			return
		case len(l) == 0:
			s.endDocument(&d)
			return
		case bytes.HasPrefix(l, []byte("---")) && crd.IsMarker(l):
			s.endDocument(&d)
			d = yamlDocument{line: line, rest: l[len("---"):]}
		case crd.IsMarker(l):
			s.endDocument(&d)
			d = yamlDocument{line: line, rest: []byte("\n")}
		default:
			s.yamlLine(&d, line, l)
		}
	}
}

func (s *stored) yamlLine(d *yamlDocument, line int, l []byte) {
	content := bytes.TrimRight(l, " \t\r\n")
	indent := len(content) - len(bytes.TrimLeft(content, " "))
	blank := indent == len(content) || content[indent] == '#'
	isDash := !blank && content[indent] == '-' && (len(content) == indent+1 || content[indent+1] == ' ')
	switch {
	case string(content) == "items:":
		s.endItem(d)
		d.isList, d.inItems, d.dash = true, true, -1
	case d.inItems && isDash && (d.dash < 0 || d.dash == indent):
		s.endItem(d)
		l[indent] = ' '
		d.dash, d.itemLine, d.item = indent, line, l
	case d.inItems && (blank || d.dash >= 0 && indent > d.dash):
		d.item = append(d.item, l...)
	default:
		s.endItem(d)
		d.inItems = false
		d.rest = append(d.rest, l...)
	}
}

func (s *stored) endItem(d *yamlDocument) {
	if where, value, err := s.readYAML(d.itemLine, d.item); value != nil {
		s.give(where, value, err)
	}
	d.item = nil
}

func (s *stored) endDocument(d *yamlDocument) {
	if !d.isList {
		if where, value, err := s.readYAML(d.line, d.rest); value != nil {
			s.give(where, value, err)
		}
		return
	}
	s.endItem(d)
	if rest, err := yaml.YAMLToJSON(d.rest); err != nil {
		s.fail(d.line, errors.New("yaml: what is beside items cannot be read")) // its lines have moved
	} else if err := checkList(rest); err != nil {
		s.fail(d.line, err)
	}
}

// checkList returns an error if the kind of what has items, which have been read, is not that of a List.
// kubectl prints the kind after the items.
func checkList(rest []byte) error {
	var list struct {
		Kind string `json:"kind"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(rest, &list)
	if err == nil && list.Kind == "" {
		return errors.New("items without a kind: want the kind List; the input may be truncated")
	}
	if err != nil || !strings.HasSuffix(list.Kind, "List") {
		return fmt.Errorf("kind %q has items: want a kind that ends in List", list.Kind)
	}
	return nil
}

// readLine is ReadBytes, but ends where a line is too long.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err != bufio.ErrBufferFull || len(line) > maxStored {
			return line, err
		}
	}
}

// readYAML converts a YAML text to JSON. It also returns the file and the line of the value, and an
// error if a key is there twice. The value is nil if the text is empty. If the text is invalid, the
// value is nil too, and readYAML yields the error with its line in the file.
func (s *stored) readYAML(line int, text []byte) (where string, value []byte, duplicates error) {
	value, err := yaml.YAMLToJSON(text)
	if err != nil {
		s.fail(line, errors.New(shiftLines(err.Error(), line-1)))
		return "", nil, nil
	}
	if string(value) == "null" {
		return "", nil, nil
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		var all []string
		for _, found := range yamlDuplicate.FindAllStringSubmatch(shiftLines(err.Error(), line-1), -1) {
			all = append(all, found[1])
		}
		duplicates = errors.New(cmp.Or(strings.Join(all, ", "), err.Error()))
	}
	return fmt.Sprintf("%s:%d", s.name, line+leadingLines(text)), value, duplicates
}

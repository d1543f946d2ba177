package crdcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// file is what was read from one place.
type file struct {
	name  string
	named bool // on the command line, not found in a directory
	data  []byte
}

// read reads files, those below directories, and standard input. It says what cannot be
// read, and goes on.
func (c *command) read(paths []string) (files []file) {
	for _, path := range paths {
		if path == "-" {
			data, err := io.ReadAll(c.in)
			if err != nil {
				c.fail(fmt.Errorf("standard input: %w", err))
				continue
			}
			files = append(files, file{"-", true, data})
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			if os.IsNotExist(err) {
				err = fmt.Errorf("the path %q does not exist", path)
			}
			c.fail(err)
			continue
		}
		names := []string{path}
		if info.IsDir() {
			if names, err = below(path); err != nil {
				c.fail(err)
			}
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				c.fail(err)
				continue
			}
			files = append(files, file{name, !info.IsDir(), data})
		}
	}
	return files
}

// below returns the files with manifests in a directory.
func below(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// document is a part of a file.
type document struct {
	file    string
	line    int    // on which its text begins
	text    []byte // with the --- before it
	objects []object
	err     error
}

// content is the line on which the objects begin.
func (d document) content() int {
	rest, marked := bytes.CutPrefix(d.text, []byte("---"))
	if first, _, _ := bytes.Cut(rest, []byte("\n")); marked && len(bytes.TrimSpace(first)) == 0 {
		return d.line + 1
	}
	return d.line
}

// object is an object in a document.
type object struct {
	json json.RawMessage
	meta
}

// meta is what an object is.
type meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// isDefinition says whether it is a CustomResourceDefinition.
func (m meta) isDefinition() bool {
	return strings.HasPrefix(m.APIVersion, "apiextensions.k8s.io/") && strings.HasPrefix(m.Kind, "CustomResourceDefinition")
}

// documents cuts a file at the lines that begin with ---.
func (f file) documents() (all []document) {
	line, d := 0, document{file: f.name, line: 1}
	end := func() {
		if d.objects, d.err = objects(bytes.TrimPrefix(d.text, []byte("---"))); len(d.objects) > 0 || d.err != nil {
			all = append(all, d)
		}
		d = document{file: f.name, line: line}
	}
	for l := range bytes.Lines(f.data) {
		line++
		if rest, ok := bytes.CutPrefix(l, []byte("---")); ok && len(bytes.TrimSpace(rest[:min(1, len(rest))])) == 0 {
			end()
		}
		d.text = append(d.text, l...)
	}
	end()
	return all
}

// objects returns the objects of a document: JSON values, or one of YAML, or the items of a
// List.
func objects(text []byte) (all []object, err error) {
	var values []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		for decoder.More() {
			var value json.RawMessage
			if decoder.Decode(&value) != nil {
				values = nil // it may be YAML
				break
			}
			values = append(values, value)
		}
	}
	if values == nil {
		value, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		values = []json.RawMessage{value}
	}
	for _, value := range values {
		if string(value) == "null" {
			continue
		}
		var list struct {
			meta  `json:",inline"`
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(value, &list.meta); err != nil {
			return nil, err
		}
		if !strings.HasSuffix(list.Kind, "List") || json.Unmarshal(value, &list) != nil || list.Items == nil {
			all = append(all, object{value, list.meta})
			continue
		}
		for _, item := range list.Items {
			m := meta{APIVersion: list.APIVersion, Kind: strings.TrimSuffix(list.Kind, "List")}
			if err := json.Unmarshal(item, &m); err != nil {
				return nil, err
			}
			all = append(all, object{item, m})
		}
	}
	return all, nil
}

// definitions returns the text of a file without what is no definition, but with the same
// lines, and how many definitions there are. What cannot be read stays, unless it is in a
// directory and mentions no definition, as templates may.
func (f file) definitions() (text []byte, n int) {
	for _, d := range f.documents() {
		found := 0
		for _, o := range d.objects {
			if o.isDefinition() {
				found++
			}
		}
		unreadable := d.err != nil && (f.named || bytes.Contains(d.text, []byte("CustomResourceDefinition")))
		if found == 0 && !unreadable {
			continue
		}
		n += found
		text = append(text, bytes.Repeat([]byte("\n"), d.line-1-bytes.Count(text, []byte("\n")))...)
		text = append(text, d.text...)
	}
	return text, n
}

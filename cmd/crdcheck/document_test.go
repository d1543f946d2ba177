package main

import (
	"bytes"
	"testing"
)

// Any file can be taken apart, and each part has its place in it.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{oven("a") + "\n{", duplicates, cooks, definition, "---\n- 1\n...\n{a: b}\nc", `{"kind":"AList","items":[{},{"kind":"A"},null]}`, `{"kind":"AList","items":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Count(data, []byte("\n")) + 1
		last := 0
		for d := range (file{name: "file", data: data}).documents() {
			if d.line <= last || d.line > lines {
				t.Errorf("a document begins on line %d, after %d of %d", d.line, last, lines)
			}
			last = d.line
			if len(d.objects)+len(d.others) == 0 && d.err == nil {
				t.Errorf("the document on line %d is empty", d.line)
			}
			for _, o := range d.objects {
				if o.Line < d.line || o.Line > lines || o.asJSON[0] != '{' {
					t.Errorf("line %d of %d..%d has %s", o.Line, d.line, lines, o.asJSON)
				}
				compile(o)
			}
		}
	})
}

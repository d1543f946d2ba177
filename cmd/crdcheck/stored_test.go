package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema/rehearse"
)

// readAllStored returns what is read, with the places, and the errors.
func readAllStored(text string) (read, errs []string) {
	readStored("f", strings.NewReader(text), func(o rehearse.Object, err error) bool {
		if err != nil {
			errs = append(errs, o.Where+" "+err.Error())
		} else {
			read = append(read, o.Where+" "+string(o.Text))
		}
		return true
	})
	return read, errs
}

func TestReadStored_ReadsWhatKubectlPrints(t *testing.T) {
	for name, test := range map[string]struct {
		text       string
		read, errs []string
	}{
		"nothing": {text: " \n", errs: []string{"f the input is empty"}},
		"binary":  {text: "\x80\x81\x82\x83\x84", errs: []string{"f:1 yaml: invalid leading UTF-8 octet"}},
		"by gzip": {text: "\x1f\x8b\x08\x00", errs: []string{"f:1 yaml: control characters are not allowed"}},
		"UTF-16":  {text: "\xff\xfea\x00", errs: []string{"f the input is in UTF-16: want JSON or YAML in UTF-8"}},
		"a List of JSON": {
			text: `{"apiVersion":"v1","items":[{"kind":"A","n":1.0},{"kind":"B"}],"kind":"List","metadata":{"resourceVersion":""}}`,
			read: []string{`f: items[0] {"kind":"A","n":1.0}`, `f: items[1] {"kind":"B"}`},
		},
		"values of JSON": {
			text: `{"kind":"A"}` + "\n" + `{"kind":"B","a":[1]} {}`,
			read: []string{`f: document 1 {"kind":"A"}`, `f: document 2 {"kind":"B","a":[1]}`, `f: document 3 {}`},
		},
		"JSON that ends":     {text: `{"items":[{"kind":"A"},{"kind`, read: []string{`f: items[0] {"kind":"A"}`}, errs: []string{"f: document 1 after byte 23: items[1]: unexpected EOF"}},
		"JSON ends early":    {text: `{"items":[{"kind":"A"},`, read: []string{`f: items[0] {"kind":"A"}`}, errs: []string{"f: document 1 after byte 23: items[1]: unexpected EOF"}},
		"YAML that ends":     {text: "items:\n- kind: A\n", read: []string{`f:2 {"kind":"A"}`}, errs: []string{"f:1 items without a kind: want the kind List; the input may be truncated"}},
		"null in JSON":       {text: `{"kind":"AList","items":null,"metadata":{}} {"kind":"B"}`, read: []string{`f: document 2 {"kind":"B"}`}},
		"null in YAML":       {text: "kind: AList\nitems: null\n---\nkind: B\n", read: []string{`f:4 {"kind":"B"}`}},
		"items that are not": {text: `{"items":{}}`, errs: []string{"f: document 1 after byte 10: items is not a list"}},
		"no object":          {text: `[{}]`, errs: []string{"f: document 1 after byte 1: [ is not an object"}},
		"a key twice in YAML": {
			text: "items:\n- kind: A\n- kind: B\n  a: {b: 1,\n    b: 2}\n  kind: B\nkind: List\n",
			read: []string{`f:2 {"kind":"A"}`},
			errs: []string{`f:3 line 5: key "b" already set in map, line 6: key "kind" already set in map`},
		},
		"a key twice in a line": {
			text: "kind: List\nitems: [{kind: A, kind: A}]\n",
			read: []string{`f:1: items[0] {"kind":"A"}`},
			errs: []string{`f:1 line 2: key "kind" already set in map`},
		},
		"a List of YAML": {
			text: "apiVersion: v1\nitems:\n- kind: A\n  text: |\n    - a\n    items:\n\n# b\n- kind: B\n  list:\n  - c\n-\n  kind: C\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
			read: []string{`f:3 {"kind":"A","text":"- a\nitems:\n"}`, `f:9 {"kind":"B","list":["c"]}`, `f:13 {"kind":"C"}`},
		},
		"a List that is indented": {
			text: "kind: List\nitems:\n  - kind: A\n  - kind: B\n    list:\n    - c\n",
			read: []string{`f:3 {"kind":"A"}`, `f:4 {"kind":"B","list":["c"]}`},
		},
		"Lists in a List": {
			text: "kind: List\nitems:\n- kind: AList\n  items: [{kind: A}, {kind: List, items: [{kind: B}]}]\n- kind: C\n",
			read: []string{`f:3: items[0] {"kind":"A"}`, `f:3: items[1]: items[0] {"kind":"B"}`, `f:5 {"kind":"C"}`},
		},
		"a List in one line": {text: "kind: List\nitems: [{kind: A}]\n", read: []string{`f:1: items[0] {"kind":"A"}`}},
		"documents": {
			text: "# first\nkind: A\n---\n---\n\nkind: B\n...\n--- {kind: C}\n",
			read: []string{`f:1 {"kind":"A"}`, `f:6 {"kind":"B"}`, `f:8 {"kind":"C"}`},
		},
		"faults do not end it": {
			text: "kind: A\n---\nkind: @\n---\nitems:\n- kind: B\n- kind: @\n- kind: C\nkind: @\n",
			read: []string{`f:1 {"kind":"A"}`, `f:6 {"kind":"B"}`, `f:8 {"kind":"C"}`},
			errs: []string{
				"f:2 yaml: line 3: found character that cannot start any token",
				"f:7 yaml: found character that cannot start any token",
				"f:4 yaml: what is beside items cannot be read",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			read, errs := readAllStored(test.text)
			if diff := cmp.Diff(test.read, read); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// Wherever a dump ends too early, there is an error, or the objects are all there.
func TestReadStored_TruncatedDump(t *testing.T) {
	for _, dump := range []string{
		"apiVersion: v1\nitems:\n- apiVersion: example.com/v1\n  kind: A\n- apiVersion: example.com/v1\n  kind: B\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
		`{"apiVersion":"v1","items":[{"kind":"A"},{"kind":"B","a":["c"]}],"kind":"List","metadata":{"resourceVersion":""}}`,
	} {
		all, _ := readAllStored(dump)
		for n := range len(dump) {
			read, errs := readAllStored(dump[:n])
			noKind := func(object string) bool { return !strings.Contains(object, `"kind":`) } // which Run refuses
			if len(errs) == 0 && !slices.ContainsFunc(read, noKind) && !slices.Equal(all, read) {
				t.Errorf("%q: got %q without an error, want %q", dump[:n], read, all)
			}
		}
	}
}

func TestReadStored_BoundsAnObject(t *testing.T) {
	for _, begin := range []string{`{"a":"`, "a: ", "items:\n- a:\n", `{"items":[{"a":"`, `{"a":1,"`} {
		endless := io.MultiReader(strings.NewReader(begin), bytes.NewReader(bytes.Repeat([]byte(" b"), maxStored)))
		var errs []error
		readStored("f", endless, func(_ rehearse.Object, err error) bool {
			errs = append(errs, err)
			return true
		})
		if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), "an object has more than 16 MiB") {
			t.Errorf("%q: %v", begin, errs)
		}
	}
}

// FuzzReadStored compares with the reader of the other commands, which has the whole text: of what
// both can read, they make the same objects.
func FuzzReadStored(f *testing.F) {
	for _, text := range []string{
		duplicates, cooks, `{"items":[{"kind":"A"}],"kind":"AList"}`, `{"items":null,"kind":"AList"}`, "items:\nkind: AList\n", `{"items":[{"kind":"A"}],"kInd":"AList"}`,
		`{"items":[{"kind":"A"}],"items":[],"kind":"AList"}`, `{"items":[{"kind":"AList","items":[{"kind":"B"}]}],"kind":"List"}`, "items:\n- a: |\n   b\n- c\nkind: List\n", "--- {a: b}\n...\nitems: []",
		"kind: List\nitems:\n  - kind: A\n\n  # c\n  - kind: \"B\n    c\"\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got []any
		broken := false
		readStored("f", strings.NewReader(text), func(o rehearse.Object, err error) bool {
			var value any
			if err == nil {
				err = json.Unmarshal(o.Text, &value)
			}
			broken = broken || err != nil
			is, _ := value.(map[string]any)
			broken = broken || is["kind"] == nil // the other reader fills it in from the kind of the List
			got = append(got, value)
			return true
		})
		var want []any
		for d := range (file{name: "f", data: []byte(text)}).documents() {
			broken = broken || d.err != nil || len(d.others) > 0
			for _, o := range d.objects {
				var value any
				if json.Unmarshal(o.asJSON, &value) != nil {
					return
				}
				want = append(want, value)
				broken = broken || len(o.duplicates) > 0
			}
		}
		if broken {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-whole +streamed):\n%s", text, diff)
		}
	})
}

package roundtrip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	// diffLines and diffText bound what a report has of a difference: so many lines, and so
	// many bytes of each text.
	diffLines = 20
	diffText  = 200
)

// differences are lines that say where two values differ: "- path: value" for what only the
// wanted one has, "+ path: value" for what only the other one has. Whether values are equal
// is never decided by them; they take time linear in the size of JSON values.
type differences struct{ lines []string }

func (d *differences) String() string {
	if len(d.lines) > diffLines {
		return strings.Join(append(d.lines[:diffLines:diffLines], "and more"), "\n")
	}
	return strings.Join(d.lines, "\n")
}

func (d *differences) full() bool { return len(d.lines) > diffLines }

// diffJSON returns where two decoded JSON values differ.
func diffJSON(want, got any) string {
	var d differences
	d.json("", want, got)
	return d.String()
}

// diffTexts returns where two texts differ that say the same.
func diffTexts(want, got string) string {
	if strings.Contains(want+got, "\n") {
		want, got = strconv.Quote(want), strconv.Quote(got)
	}
	var d differences
	d.replaced("", want, got)
	return d.String()
}

func (d *differences) json(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			d.members(path, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			d.elements(path, w, g)
			return
		}
	}
	if !reflect.DeepEqual(want, got) {
		d.replaced(path, jsonText(want), jsonText(got))
	}
}

func (d *differences) members(path string, want, got map[string]any) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d.full() {
			return
		}
		at := join(path, name)
		if strings.ContainsAny(name, ".[") {
			at = path + "[" + strconv.Quote(name) + "]"
		}
		w, before := want[name]
		g, after := got[name]
		switch {
		case !after:
			d.line("-", at, jsonText(w), 0)
		case !before:
			d.line("+", at, jsonText(g), 0)
		default:
			d.json(at, w, g)
		}
	}
}

// elements compares lists of one length by position. Of others, it passes over what they
// begin and end with.
func (d *differences) elements(path string, want, got []any) {
	first, last, n := 0, 0, min(len(want), len(got))
	for first < n && len(want) != len(got) && reflect.DeepEqual(want[first], got[first]) {
		first++
	}
	for last < n-first && len(want) != len(got) && reflect.DeepEqual(want[len(want)-1-last], got[len(got)-1-last]) {
		last++
	}
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	for i := first; i < max(len(want), len(got))-last && !d.full(); i++ {
		if len(want) == len(got) {
			d.json(at(i), want[i], got[i])
			continue
		}
		if i < len(want)-last {
			d.line("-", at(i), jsonText(want[i]), 0)
		}
		if i < len(got)-last {
			d.line("+", at(i), jsonText(got[i]), 0)
		}
	}
}

// values compares Go values of one type that are not equal.
func (d *differences) values(path string, want, got reflect.Value, strict bool) {
	if d.full() || equalityOf(want.Type())(want, got, strict) {
		return
	}
	before := len(d.lines)
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !want.IsNil() && !got.IsNil() && want.Elem().Type() == got.Elem().Type() {
			d.values(path, want.Elem(), got.Elem(), strict)
		}
	case reflect.Struct:
		for i := range want.NumField() {
			d.values(join(path, jsonName(want.Type().Field(i))), want.Field(i), got.Field(i), strict)
		}
	case reflect.Slice, reflect.Array:
		for i := range min(want.Len(), got.Len()) {
			d.values(path+"["+strconv.Itoa(i)+"]", want.Index(i), got.Index(i), strict)
		}
	}
	if len(d.lines) == before {
		w, g := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)
		if want.CanInterface() {
			if a, b := jsonText(want.Interface()), jsonText(got.Interface()); a != b {
				w, g = a, b
			}
		}
		d.replaced(path, w, g)
	}
}

func (d *differences) replaced(path, want, got string) {
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	d.line("-", path, want, same)
	d.line("+", path, got, same)
}

// line adds a line with what is around a place in a text.
func (d *differences) line(sign, path, text string, around int) {
	if path != "" {
		path += ": "
	}
	if len(text) > diffText {
		from := max(0, min(around-diffText/4, len(text)-diffText))
		cut := strings.ToValidUTF8(text[from:from+diffText], "")
		if from > 0 {
			cut = "…" + cut
		}
		if from+diffText < len(text) {
			cut += "…"
		}
		text = cut
	}
	d.lines = append(d.lines, sign+" "+path+text)
}

// jsonText returns the text of a decoded JSON value.
func jsonText(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

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

// differences are lines that show where two values differ: "- path: value" for what only the
// wanted one has, "+ path: value" for what only the other one has.
type differences struct{ lines []string }

// diffValues returns where two values differ: decoded JSON, or Go values of one type. Unless
// strict, nil equals empty.
func diffValues(want, got any, strict bool) string {
	var d differences
	d.values("", reflect.ValueOf(&want).Elem(), reflect.ValueOf(&got).Elem(), strict)
	return d.String()
}

// diffTexts returns where two texts differ that mean the same.
func diffTexts(want, got string) string {
	if strings.Contains(want+got, "\n") {
		want, got = strconv.Quote(want), strconv.Quote(got)
	}
	var d differences
	d.replaced("", want, got)
	return d.String()
}

func (d *differences) String() string {
	if len(d.lines) > diffLines {
		return strings.Join(append(d.lines[:diffLines:diffLines], "and more"), "\n")
	}
	return strings.Join(d.lines, "\n")
}

func (d *differences) values(path string, want, got reflect.Value, strict bool) {
	if len(d.lines) > diffLines || sameReflected(want, got, strict) {
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
			name := jsonName(want.Type().Field(i))
			d.values(join(path, name), want.Field(i), got.Field(i), strict)
		}
	case reflect.Slice, reflect.Array:
		for i := range max(want.Len(), got.Len()) {
			at := path + "[" + strconv.Itoa(i) + "]"
			switch {
			case i >= got.Len():
				d.line("-", at, text(want.Index(i)), 0)
			case i >= want.Len():
				d.line("+", at, text(got.Index(i)), 0)
			default:
				d.values(at, want.Index(i), got.Index(i), strict)
			}
		}
	case reflect.Map:
		d.members(path, want, got, strict)
	}
	if len(d.lines) == before {
		w, g := text(want), text(got)
		if w == g { // JSON does not show the difference
			w, g = fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)
		}
		d.replaced(path, w, g)
	}
}

func (d *differences) members(path string, want, got reflect.Value, strict bool) {
	all := map[string]reflect.Value{} // keys by their text
	for _, key := range slices.Concat(want.MapKeys(), got.MapKeys()) {
		all[fmt.Sprint(key)] = key
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := join(path, name)
		if strings.ContainsAny(name, ".[") {
			at = path + "[" + strconv.Quote(name) + "]"
		}
		w, g := want.MapIndex(all[name]), got.MapIndex(all[name])
		switch {
		case !g.IsValid():
			d.line("-", at, text(w), 0)
		case !w.IsValid():
			d.line("+", at, text(g), 0)
		default:
			d.values(at, w, g, strict)
		}
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

// text returns the JSON of a value, or its Go syntax if it has none.
func text(v reflect.Value) string {
	if !v.CanInterface() {
		return fmt.Sprintf("%#v", v)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Interface()); err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

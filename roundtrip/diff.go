package roundtrip

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// diffLines and diffText bound the lines of a difference in a report, and the bytes of each
	// text.
	diffLines = 20
	diffText  = 200
)

// diffJSON returns the differences between two values of decoded JSON: "- path: value" if only the
// wanted one has it, and "+ path: value" if only the other one does.
func diffJSON(want, got any) string {
	wanted, other := map[string]string{}, map[string]string{}
	addLeaves(wanted, "", want)
	addLeaves(other, "", got)
	return diffLeaves(wanted, other)
}

// diffLeaves is diffJSON for leaves.
func diffLeaves(wanted, other map[string]string) string {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(wanted)), maps.Keys(other))
	slices.Sort(paths)
	var lines []string
	for _, path := range slices.Compact(paths) {
		w, wants := wanted[path]
		g, has := other[path]
		if wants == has && w == g {
			continue
		}
		same := commonPrefix(w, g)
		if wants {
			lines = append(lines, diffLine("-", path, w, same))
		}
		if has {
			lines = append(lines, diffLine("+", path, g, same))
		}
		if len(lines) > diffLines {
			return strings.Join(append(lines[:diffLines], "and more"), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// addLeaves adds the texts of scalars and of empty lists and objects, by their paths.
func addLeaves(leaves map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			at := join(path, name)
			if name == "" || strings.ContainsAny(name, ".[") {
				at = path + "[" + strconv.Quote(name) + "]"
			}
			addLeaves(leaves, at, member)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, element := range v {
			addLeaves(leaves, path+"["+strconv.Itoa(i)+"]", element)
		}
		if len(v) > 0 {
			return
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // impossible for JSON
	}
	leaves[path] = strings.TrimSuffix(text.String(), "\n")
}

// diffTexts returns where two texts of the same meaning differ.
func diffTexts(want, got string) string {
	if strings.Contains(want+got, "\n") {
		want, got = strconv.Quote(want), strconv.Quote(got)
	}
	same := commonPrefix(want, got)
	return diffLine("-", "", want, same) + "\n" + diffLine("+", "", got, same)
}

func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// diffLine returns a line with what is around a place in a text.
func diffLine(sign, path, text string, around int) string {
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
	return sign + " " + path + text
}

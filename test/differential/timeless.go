package differential

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// timeless leaves out of the texts of an outcome what is different each time on the
// server, or what only a server knows.
func (c *Comparison) timeless(o Outcome) Outcome {
	change := func(text string) string {
		// apiserver/pkg/cel/common/typeprovider.go: the name of the type of self is of the
		// time.
		text = selfType.ReplaceAllString(text, "selfType")
		// A field of a definition is a pointer, and printed as such.
		text = pointer.ReplaceAllString(text, "0xc0")
		if generate := generateName(c.Body); generate != "" {
			// apiserver/pkg/storage/names/generate.go: it may be cut before that.
			text = regexp.MustCompile(regexp.QuoteMeta(generate[:min(len(generate), 58)])+`[0-9a-z]{5}\b`).ReplaceAllString(text, "")
		}
		return stripped(text, c.Old == nil)
	}
	o.Message = change(o.Message)
	o.Causes, o.Warnings = slices.Clone(o.Causes), slices.Clone(o.Warnings)
	for _, texts := range [][]string{o.Causes, o.Warnings} {
		for i := range texts {
			texts[i] = change(texts[i])
		}
		slices.Sort(texts)
	}
	if len(o.Causes) == 0 {
		o.Causes = nil
	}
	if len(o.Warnings) == 0 {
		o.Warnings = nil
	}
	return o
}

var (
	selfType = regexp.MustCompile(`selfType[0-9]+`)
	pointer  = regexp.MustCompile(`\b0xc[0-9a-f]{9}\b`)
)

func generateName(body []byte) string {
	var object struct {
		Metadata struct {
			GenerateName any
		}
	}
	_ = yaml.Unmarshal(body, &object) // it may be anything
	generate, _ := object.Metadata.GenerateName.(string)
	return generate
}

// stripped is a text in which a whole object is the value that is invalid, without what
// only a server knows of it.
func stripped(text string, created bool) string {
	const invalid = " value: {"
	i := strings.Index(text, invalid)
	if i < 0 {
		return text
	}
	i += len(invalid) - 1
	var value json.RawMessage
	if json.NewDecoder(strings.NewReader(text[i:])).Decode(&value) != nil {
		return text
	}
	var object map[string]any
	if utiljson.Unmarshal(value, &object) != nil || object["metadata"] == nil || object["kind"] == nil {
		return text
	}
	strip(object, created)
	after, _ := bytes.CutPrefix([]byte(text[i:]), value)
	return text[:i] + string(mustJSON(object)) + stripped(string(after), created)
}

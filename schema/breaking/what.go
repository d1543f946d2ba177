package breaking

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/internal/generate"
)

// Users accept a change by its What, so it says all that the change depends on. A text that is too long
// for people ends with its hash.

// maxText is how many bytes of a text are printed.
const maxText = 120

// limited returns a text, or the beginning of a long one and its hash.
func limited(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s... (sha256:%.6x)", cut(text, maxText), sha256.Sum256([]byte(text)))
}

// cut returns the beginning of a text, without the half of a character.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:n], "") }

// jsonOf writes a value as JSON on one line.
func jsonOf(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // what was JSON is JSON
	return strings.TrimSpace(text.String())
}

// exact writes a value as JSON. Unlike short, it tells values apart however long they are.
func exact(value any) string { return limited(jsonOf(value)) }

// short writes a value as JSON, cut after 60 bytes.
func short(value any) string {
	text := jsonOf(value)
	if len(text) > 60 {
		return cut(text, 57) + "..."
	}
	return text
}

// valueList lists the values of an enum, whose order means nothing.
func valueList(enum []structuralschema.JSON) string {
	var all []string
	for _, v := range enum {
		all = append(all, jsonOf(v.Object))
	}
	return listed(all)
}

// listed lists texts, whose order means nothing.
func listed(texts []string) string {
	slices.Sort(texts)
	return limited(strings.Join(texts, ", "))
}

// replaced describes a new value in the place of an old one, which is empty if there was none.
func replaced(name, before, now string) string {
	if before == "" {
		return "it has the " + name + " " + now + " now"
	}
	return "the " + name + " " + before + " is now " + now
}

// becomes is like replaced, in other words. The new value may be empty too.
func becomes(name, before, now string) string {
	switch {
	case before == "":
		return fmt.Sprintf("%s is %s now", name, now)
	case now == "":
		return fmt.Sprintf("%s %s is removed", name, before)
	}
	return fmt.Sprintf("%s %s is now %s", name, before, now)
}

// defaultText describes another default. Either may be nil.
func defaultText(before, now any) string {
	switch {
	case before == nil:
		return replaced("default", "", exact(now))
	case now == nil:
		return "the default " + exact(before) + " is removed"
	}
	return replaced("default", exact(before), exact(now))
}

// boundText is the value of a bound.
func boundText(b generate.Bound) string {
	if b.Open {
		return short(b.Value) + " (exclusive)"
	}
	return short(b.Value)
}

// listType is how the items of a list are told apart.
func listType(s *structuralschema.Structural) string {
	kind := ptr.Deref(s.XListType, "atomic")
	if kind == "map" {
		kind += " by " + strings.Join(s.XListMapKeys, ", ")
	}
	return kind
}

// newFields lists the properties that only the new schema has, after a text. It is empty if there are
// none.
func newFields(before, now *structuralschema.Structural, text string) string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(now.Properties)), func(name string) bool { return declares(before, name) })
	if len(names) == 0 {
		return ""
	}
	return text + listed(names)
}

// newType is the type of the new schema. With an old value null, it tells whether null stays.
func newType(was, is *structuralschema.Structural) string {
	if was.Nullable && is.Nullable {
		return "nullable " + typeOf(is)
	}
	return typeOf(is)
}

// nestedText writes the schemas of a composition, whose order means nothing.
func nestedText(schemas ...structuralschema.NestedValueValidation) string {
	var all []string
	for _, v := range schemas {
		in := structuralschema.Structural{ValueValidation: &structuralschema.ValueValidation{Not: &v}}
		all = append(all, jsonOf(in.ToKubeOpenAPI().Not))
	}
	return listed(all)
}

// restText writes what a schema says beside the type, after a text. It is empty if that is nothing.
func restText(s *structuralschema.Structural, text string) string {
	rest := undocumented(s)
	rest.Type, rest.Nullable, rest.XIntOrString, rest.Default = "", false, false, structuralschema.JSON{}
	schema := jsonOf(rest.ToKubeOpenAPI())
	if schema == "{}" {
		return ""
	}
	return text + limited(schema)
}

// metadataText writes what a schema requires of the metadata of an embedded resource, after a text. It is
// empty if that is what the server requires of any.
func metadataText(s *structuralschema.Structural, text string) string {
	restricted := &structuralschema.Structural{Properties: map[string]structuralschema.Structural{}}
	for name, any := range declareMetadata(&structuralschema.Structural{}).Properties {
		if p := s.Properties[name]; restText(&p, "") != restText(&any, "") {
			restricted.Properties[name] = p
		}
	}
	return restText(restricted, text)
}

// undocumented returns a copy of a schema without what is for people.
func undocumented(s *structuralschema.Structural) *structuralschema.Structural {
	out := s.DeepCopy()
	(&structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		s.Title, s.Description, s.ExternalDocs, s.Example = "", "", nil, structuralschema.JSON{}
		for i := range s.XValidations {
			s.XValidations[i].Message, s.XValidations[i].MessageExpression = "", ""
		}
		return true
	}}).Visit(out)
	return out
}

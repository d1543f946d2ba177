package rehearse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/internal/fieldpath"
)

// redacted stands where a value was.
const redacted = "REDACTED"

// redactor is the paths of the fields whose values are secret.
type redactor [][]fieldpath.Step

// secrets returns the values in all forms of an object as text, the longest first.
func (r redactor) secrets(forms [][]byte) (secrets []string) {
	if len(r) == 0 {
		return nil
	}
	for _, form := range forms {
		var object map[string]any
		if utiljson.Unmarshal(form, &object) != nil {
			continue
		}
		for _, path := range r {
			visit(object, path, func(value any) any {
				scalars(value, func(text string) {
					if quoted, _ := json.Marshal(text); text != "" {
						secrets = append(secrets, text, string(quoted[1:len(quoted)-1]), strings.Trim(fmt.Sprintf("%q", text), `"`))
					}
				})
				return value
			})
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}

// path returns a path of a finding without the keys that a redacted value has.
func (r redactor) path(path string) string {
	for _, steps := range r {
		whole := ""
		for _, s := range steps {
			if s.All {
				whole += "[]"
			} else {
				whole += "." + s.Name
			}
		}
		whole = strings.TrimPrefix(whole, ".")
		if rest, below := strings.CutPrefix(path, whole); below && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) {
			return whole
		}
	}
	return path
}

// visit replaces the values at a path. A step goes through a list, even without [*].
func visit(value any, path []fieldpath.Step, f func(any) any) any {
	if len(path) == 0 {
		return f(value)
	}
	switch v := value.(type) {
	case []any:
		if path[0].All {
			path = path[1:]
		}
		for i := range v {
			v[i] = visit(v[i], path, f)
		}
	case map[string]any:
		for key := range v {
			if path[0].All || key == path[0].Name {
				v[key] = visit(v[key], path[1:], f)
			}
		}
	}
	return value
}

// scalars calls f with the text of each scalar in a value, and with each key.
func scalars(value any, f func(text string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			f(key)
			scalars(value, f)
		}
	case []any:
		for _, value := range v {
			scalars(value, f)
		}
	case nil, bool:
	default:
		f(fmt.Sprint(v))
	}
}

// object returns the JSON of an object without the values, wherever they occur in it.
func (r redactor) object(text []byte, secrets []string) json.RawMessage {
	var object any
	if len(r) == 0 || utiljson.Unmarshal(text, &object) != nil {
		return text
	}
	for _, path := range r {
		object = visit(object, path, func(any) any { return redacted })
	}
	return valueOf(object, secrets)
}

// hide replaces scalars that contain a secret, as an annotation with the whole object does.
func hide(value any, secrets []string) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[text(key, secrets)] = hide(value, secrets)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = hide(v[i], secrets)
		}
		return out
	case nil, bool:
		return v
	case string: // such as the annotation of kubectl apply, with the whole object
		var inner any
		if text := strings.TrimSpace(v); strings.HasPrefix(text, "{") && utiljson.Unmarshal([]byte(text), &inner) == nil {
			return string(valueOf(inner, secrets))
		}
	}
	if contains := fmt.Sprint(value); text(contains, secrets) != contains {
		return redacted
	}
	return value
}

// text replaces secrets in a text.
func text(s string, secrets []string) string {
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, redacted)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

package crdfuzz

import "encoding/json"

var formatted = map[string][]any{
	"date-time": {"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5+01:00", "2020-01-01"},
	"datetime":  {"2020-01-01T00:00:00Z"},
	"date":      {"2020-01-01", "2020-1-1"},
	"duration":  {"1h", "90s", "5", "1 hour"},
	"byte":      {"YWJj", "YQ==", "a"},
	"uuid":      {"3b1f8c52-0d1c-4f7e-9f65-6a4f8f0a9f11"},
	"uri":       {"https://example.com/a", "a"},
	"email":     {"a@example.com"},
	"hostname":  {"example.com", "a_b"},
	"ipv4":      {"10.0.0.1", "010.0.0.1"},
	"ipv6":      {"::1", "fe80::"},
	"cidr":      {"10.0.0.0/8", "10.0.0.1/8"},
	"mac":       {"00:00:5e:00:53:01"},
}

// value makes a value that has the right types, except for one part in so many, and may
// break other rules.
func (m maker) value(s object, wrong int) any {
	if m.rarely(wrong) {
		return m.anything(2)
	}
	if s["nullable"] == true && m.rarely(6) {
		return nil
	}
	if enum, _ := s["enum"].([]any); len(enum) > 0 && m.often(8) {
		return cloneAny(one(m, enum...))
	}
	kind, _ := s["type"].(string)
	if s["x-kubernetes-int-or-string"] == true {
		kind = m.word("integer string")
	}
	switch kind {
	case "string":
		if of := formatted[text(s["format"])]; of != nil && m.often(6) {
			return one(m, of...)
		}
		return m.text()
	case "integer":
		return m.integer()
	case "number":
		if m.rarely(2) {
			return m.integer()
		}
		return one(m, 0.5, 1.5, 2.5, -0.5, 0.1, 1e3)
	case "boolean":
		return m.Intn(2) == 1
	case "array":
		items, _ := s["items"].(object)
		out := []any{}
		for range m.Intn(4) {
			out = append(out, m.value(items, wrong))
		}
		return out
	}
	out := object{}
	properties, _ := s["properties"].(object)
	required, _ := s["required"].([]any)
	for _, name := range sortedKeys(properties) {
		p := properties[name].(object)
		if m.often(3) || contains(required, name) {
			out[name] = m.value(p, wrong)
		}
	}
	if items, ok := s["additionalProperties"].(object); ok || s["additionalProperties"] == true {
		for range m.Intn(3) {
			out[m.word("a b c key x.y/z")] = m.value(items, wrong)
		}
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && m.rarely(2) {
		out[m.word("unknown a b x-y")] = m.anything(2)
	}
	if s["x-kubernetes-embedded-resource"] == true {
		if m.often(10) {
			out["apiVersion"] = m.word("v1 v1 apps/v1 a/b/c")
		}
		if m.often(10) {
			out["kind"] = m.word("Pod Pod Deployment 5x")
		}
		if m.often(4) {
			out["metadata"] = m.embeddedMetadata()
		}
	}
	return out
}

func (m maker) text() string {
	return one(m, "a", "b", "abc", "x", "", "5", "50%", "ab-x", "aa", "ä", "A b", "a\nb", "0123456789", "é\u0301 \U0001F355")
}

func (m maker) integer() any {
	if m.rarely(20) {
		return one[any](m, int64(1)<<31, int64(1)<<53+1, int64(-1)<<63, json.Number("1e3"), json.Number("1.0"), json.Number("-0"), json.Number("9223372036854775808"), json.Number("1e400"))
	}
	return one[any](m, int64(1), int64(2), int64(3), int64(0), int64(4), int64(5), int64(6), int64(10), int64(-1), int64(-3))
}

// anything is any JSON, at most so deep.
func (m maker) anything(depth int) any {
	switch n := m.Intn(9); {
	case n == 0:
		return nil
	case n == 1:
		return m.Intn(2) == 1
	case n == 2:
		return m.integer()
	case n == 3:
		return one[any](m, 0.5, json.Number("1.0"), json.Number("2.50"), json.Number("1E2"), -1.5)
	case n < 6 || depth == 0:
		return m.text()
	case n == 6:
		out := []any{}
		for range m.Intn(3) {
			out = append(out, m.anything(depth-1))
		}
		return out
	}
	out := object{}
	for range m.Intn(3) {
		out[m.word(names)] = m.anything(depth - 1)
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func contains(list []any, name string) bool {
	for _, e := range list {
		if e == name {
			return true
		}
	}
	return false
}

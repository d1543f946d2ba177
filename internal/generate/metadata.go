package generate

import (
	"fmt"
	"strconv"
	"time"
)

// metadata is what an API server may have stored, each part or not, as roundtrip makes it
// of Go types. An object that is being deleted is no different for anybody here.
func (m *maker) metadata(n *node, c *choice) (map[string]any, error) {
	name, err := m.value(n.metadataName, c.kid(0), nil)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"name": name}
	for i, part := range []struct {
		name  string
		value func(x uint64) any
	}{
		{"namespace", func(x uint64) any { return "x" + word(x) }},
		{"uid", func(x uint64) any { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", x) }},
		{"resourceVersion", func(x uint64) any { return strconv.FormatUint(x+1, 10) }},
		{"generation", func(x uint64) any { return int64(x + 1) }},
		{"creationTimestamp", func(x uint64) any { return second(x) }},
		{"labels", func(x uint64) any { return pairs("x", x) }},
		{"annotations", func(x uint64) any { return pairs("example.com/x", x) }},
		{"managedFields", func(x uint64) any {
			return []any{map[string]any{
				"manager": "x" + word(x), "operation": "Update", "apiVersion": "example.com/v1",
				"time": second(x), "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:x" + word(x): map[string]any{}}},
			}}
		}},
	} {
		if draw := m.draw(c.kid(i + 1)); some(draw) {
			out[part.name] = part.value(draw/unit - 1)
		}
	}
	return out, nil
}

// second is one of this century: finer times than that are lost in JSON.
func second(x uint64) string {
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(x) * time.Second).Format(time.RFC3339)
}

// pairs are labels or annotations, one at least: what has none is absent. Their number and
// their length grow with x.
func pairs(prefix string, x uint64) map[string]any {
	m := map[string]any{}
	for {
		m[prefix+word(x%26)] = word(x / 26 % 26)
		if x /= 26 * 26; x == 0 {
			return m
		}
	}
}

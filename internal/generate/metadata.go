package generate

import (
	"fmt"
	"strconv"
	"time"
)

// Metadata returns metadata as an API server may have stored it. For each optional member, draw
// returns false to leave it out, or a number to make it of. Members shrink one by one. Only a
// deletion depends on another member, because finalizers keep an object that is being deleted.
func Metadata(name any, apiVersion string, draw func() (x uint64, ok bool)) map[string]any {
	out := map[string]any{"name": name}
	for _, member := range []struct {
		name  string
		value func(x uint64) any
	}{
		{"namespace", func(x uint64) any { return "x" + Word(x) }},
		{"uid", func(x uint64) any { return uid(x) }},
		{"resourceVersion", func(x uint64) any { return strconv.FormatUint(x+1, 10) }},
		{"generation", func(x uint64) any { return int64(x + 1) }},
		{"creationTimestamp", func(x uint64) any { return second(x) }},
		{"labels", func(x uint64) any { return pairs("x", "app.kubernetes.io/name", x) }},
		{"annotations", func(x uint64) any {
			return pairs("example.com/x", "kubectl.kubernetes.io/last-applied-configuration", x)
		}},
		{"managedFields", func(x uint64) any {
			return []any{map[string]any{
				"manager": "x" + Word(x), "operation": "Update", "apiVersion": apiVersion,
				"time": second(x), "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:x" + Word(x): map[string]any{}}},
			}}
		}},
		{"generateName", func(x uint64) any { return "x" + Word(x) + "-" }},
		{"selfLink", func(x uint64) any { return "/x" + Word(x) }}, // only in an admission review, if the client sent it
		{"ownerReferences", func(x uint64) any { return owners(x) }},
		{"finalizers", func(x uint64) any { return finalizers(x) }},
		{"deletionTimestamp", func(x uint64) any { return second(x) }},
	} {
		x, ok := draw()
		switch {
		case !ok || member.name == "deletionTimestamp" && out["finalizers"] == nil:
			continue
		case member.name == "deletionTimestamp":
			// Zero for a custom resource, but perhaps not for an aggregated API server.
			out["deletionGracePeriodSeconds"] = int64(x % 2 * 30)
		}
		out[member.name] = member.value(x)
	}
	return out
}

// metadata makes metadata. The schema may restrict its names.
func (m *maker) metadata(n *node) (map[string]any, error) {
	name, err := m.value(n.metadataName)
	if err != nil {
		return nil, err
	}
	out := Metadata(name, "example.com/v1", func() (uint64, bool) {
		draw := m.Uint64()
		return draw/unit - 1, present(draw, usualShare)
	})
	if n.noPrefix {
		delete(out, "generateName")
	}
	return out, nil
}

func uid(x uint64) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", x) }

// second returns a time of this century, in seconds, which is the precision of JSON.
func second(x uint64) string {
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(x) * time.Second).Format(time.RFC3339)
}

// pairs returns labels or annotations, at least one. Their number and length grow with x.
func pairs(prefix, known string, x uint64) map[string]any {
	m := map[string]any{}
	for {
		name := prefix + Word(x%26)
		if x%26 == 25 { // what conversions know, and may take for their own
			name = known
		}
		m[name] = Word(x / 26 % 26)
		if x /= 26 * 26; x == 0 {
			return m
		}
	}
}

// owners returns one owner with both flags absent, true or false, and maybe one without flags.
func owners(x uint64) (all []any) {
	for i := range 1 + x/9%2 {
		all = append(all, map[string]any{
			"apiVersion": "example.com/v1", "kind": "Owner", "name": "x" + Word(x/18), "uid": uid(x + i),
		})
	}
	for _, flag := range []string{"controller", "blockOwnerDeletion"} {
		if x%3 > 0 {
			all[0].(map[string]any)[flag] = x%3 == 1
		}
		x /= 3
	}
	return all
}

// finalizers returns up to three finalizers, not in the order of their names.
func finalizers(x uint64) (all []any) {
	for i := x % 3; ; i-- {
		if all = append(all, "example.com/x"+Word(x/3+i)); i == 0 {
			return all
		}
	}
}

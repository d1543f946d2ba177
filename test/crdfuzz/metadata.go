package crdfuzz

import (
	"encoding/json"
	"strings"
)

// Placeholders in a request: see differential.Case.
const (
	theName            = "NAME"
	theResourceVersion = "RESOURCEVERSION"
	theGroup           = "GROUP"
)

// odd adds oddities to the metadata of an object.
func (m maker) odd(metadata object) {
	for range 1 + m.Intn(2) {
		switch m.Intn(16) {
		case 0:
			metadata["labels"] = one[any](m, object{"a": "b"}, object{"a/b": "c", "x": ""}, nil, object{}, object{"a b": "!"}, object{"a": int64(1)}, "a=b", object{"a": nil})
		case 1:
			metadata["annotations"] = one[any](m, object{"a": "b"}, nil, object{"a b": "c", "UPPER/x": "d"}, object{"a": true}, []any{}, object{"a": nil, "b": "c"})
		case 2:
			metadata["finalizers"] = one[any](m, []any{"a/b"}, []any{"a", "b.c", "a"}, []any{"g h"}, nil, []any{"foregroundDeletion", "orphan"}, "a", []any{nil}, []any{int64(1)})
		case 3:
			metadata["ownerReferences"] = m.owners()
		case 4:
			metadata["name"] = one[any](m, "A_b", "", "a/b", int64(5), nil, theName+"-other", strings.Repeat("x", 254), theName+".", theName)
		case 5:
			metadata["generateName"] = one[any](m, "gen-", "Gen", "", nil, int64(1), strings.Repeat("g", 260))
		case 6:
			metadata["namespace"] = one[any](m, "default", "other", "", nil, int64(1))
		case 7:
			metadata["uid"] = one[any](m, "", "u", nil, int64(1))
		case 8:
			metadata["resourceVersion"] = one[any](m, "", "0", "x", nil, "1", int64(5))
		case 9:
			metadata["creationTimestamp"] = one[any](m, nil, "2020-01-01T00:00:00Z", "yesterday", "", int64(5))
		case 10:
			metadata["deletionTimestamp"] = one[any](m, nil, "2020-01-01T00:00:00Z", "x")
			metadata["deletionGracePeriodSeconds"] = one[any](m, nil, int64(3), "3", json.Number("1.5"), int64(-1))
		case 11:
			metadata["generation"] = one[any](m, int64(0), int64(7), int64(-1), "1", json.Number("1.0"), nil, 1.5)
		case 12:
			metadata["managedFields"] = one[any](m, nil, []any{}, []any{object{"manager": "m"}}, "x", []any{nil}, []any{object{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": object{"f:a": object{}}}})
		case 13:
			metadata["selfLink"] = one[any](m, "x", nil, int64(1))
		case 14:
			metadata[one(m, "unknown", "Name", "LABELS")] = m.anything(1)
		case 15:
			delete(metadata, one(m, "name", "resourceVersion"))
		}
	}
}

func (m maker) owners() any {
	owner := func() any {
		o := object{"apiVersion": "v1", "kind": "X", "name": "x", "uid": m.word("u v")}
		switch m.Intn(8) {
		case 4:
			o["controller"] = one[any](m, true, nil, "x")
		case 5:
			delete(o, m.word("apiVersion kind name uid"))
		case 6:
			o[m.word("apiVersion kind name uid")] = one[any](m, "", "a/b/c", "events.k8s.io/v1", int64(1), nil)
		case 7:
			o[m.word("unknown blockOwnerDeletion")] = one[any](m, true, nil)
		}
		return o
	}
	out := []any{owner()}
	for range m.Intn(3) {
		out = append(out, owner())
	}
	return one[any](m, out, out, out, nil, "x", []any{nil})
}

// embeddedMetadata are those of an embedded resource.
func (m maker) embeddedMetadata() any {
	metadata := object{"name": m.word("a b x-y A_b")}
	if m.rarely(4) {
		m.odd(metadata)
	}
	if m.rarely(20) {
		return m.anything(1)
	}
	return metadata
}

package differential

import "testing"

func TestKnown_TextsOfOlderServers(t *testing.T) {
	for name, test := range map[string]struct {
		since           int // the release that says it as offline
		server, offline string
		not             string // another text offline that says something else
	}{
		"an object": {34, `a: Invalid value: map[string]interface {}{"b":1}: no`, `a: Invalid value: {"b":1}: no`, `a: Invalid value: {"b":1}: yes`},
		"a list":    {34, `a: Duplicate value: []interface {}{1}`, `a: Duplicate value: [1]`, `b: Duplicate value: [1]`},
		"of texts":  {34, `a: Invalid value: []string{"b", "c"}: no`, `a: Invalid value: ["b","c"]: no`, `a: Invalid value: "b": no`},
		"a struct":  {34, `a: Invalid value: v1.X{A:(*bool)(nil)}: no`, `a: Invalid value: {"A":null}: no`, `a: Invalid value: null: no`},
		"none":      {34, `a: Invalid value: []v1.X(nil): no`, `a: Invalid value: null: no`, `a: Invalid value: [1]: no`},
		"null":      {34, `a: Unsupported value: "null": supported values: "b"`, `a: Unsupported value: null: supported values: "b"`, `a: Unsupported value: null: supported values: "c"`},
		"a time":    {34, `a: Invalid value: 2020-01-01 00:00:00 +0000 UTC: no`, `a: Invalid value: "2020-01-01T00:00:00Z": no`, `a: Invalid value: "2020-01-01T00:00:01Z": no`},
		"a number":  {34, `a: Invalid value: 0x1f: no`, `a: Invalid value: 31: no`, `a: Invalid value: 32: no`},
		"one item":  {34, `a: Too many: 2: must have at most 1 items`, `a: Too many: 2: must have at most 1 item`, `a: Too many: 3: must have at most 1 item`},
		"a message of a rule": {34, `x[0].message: FieldValueInvalid: Invalid value: "a\"": message must not contain line breaks`,
			`x[0].message: FieldValueInvalid: Invalid value: "a\"": must not contain line breaks`, `x[0].message: FieldValueInvalid: Invalid value: "b": must not contain line breaks`},
		"a namespace": {34, `a.service.namespace: Required value: service namespace is required`, `a.service.namespace: Required value`, `a.service.path: Required value`},
		"a kind":      {34, `a.kind: Required value: must not be empty`, `a.kind: Required value`, `a.kindly: Required value`},
		"a patch": {34, `Internal error occurred: EOF`, `Internal error occurred: failed calling webhook "a": received undecodable patch in webhook response: EOF`,
			`Internal error occurred: failed calling webhook "a": received undecodable patch in webhook response: too short`},
		"an object of a rule":  {35, `a: Invalid value: "object": failed rule: b`, `a: Invalid value: failed rule: b`, `a: Invalid value: failed rule: c`},
		"a list of a rule":     {35, `a: Duplicate value: "array"`, `a: Duplicate value`, `a: Duplicate value: 1`},
		"a text of a rule":     {35, `a: Invalid value: "string": b`, `a: Invalid value: "c\n: d": b`, `a: Invalid value: 5: b`},
		"a number of a rule":   {35, `a: Invalid value: "number": b`, `a: Invalid value: 1e+06: b`, `a: Invalid value: "1": b`},
		"true of a rule":       {35, `a: Invalid value: "boolean": b`, `a: Invalid value: true: b`, `a: Invalid value: 1: b`},
		"anything of a rule":   {35, `a: Invalid value: "": b`, `a: Invalid value: "50%": b`, `a: Invalid value: b`},
		"a fraction":           {36, `a: Invalid value: "number": a in body must be of type integer: "number"`, `a: Invalid value: "float64": a in body must be of type int32: "float64"`, `a: Invalid value: "string": a in body must be of type byte: "string"`},
		"no number":            {36, `a: Invalid value: "boolean": a in body must be of type number: "boolean"`, `a: Invalid value: "": a in body must be of type double: ""`, `a: Invalid value: "": b in body must be of type double: ""`},
		"an owner without uid": {37, `ownerReferences.uid: Invalid value: "": must not be empty`, `ownerReferences[0].uid: Required value: must not be empty`, `ownerReferences[0].name: Required value: must not be empty`},
	} {
		t.Run(name, func(t *testing.T) {
			if !Same(test.since-1, test.server, test.offline) {
				t.Errorf("%s\n%s\nare not the same", test.server, test.offline)
			}
			if Same(test.since, test.server, test.offline) {
				t.Errorf("they are the same to 1.%d", test.since)
			}
			if Same(test.since-1, test.server, test.not) {
				t.Errorf("%s\n%s\nare the same", test.server, test.not)
			}
		})
	}
}

package merge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/crdkit/crdkit/test/expect"
)

// A patch has no more operations than the API server takes.
func TestPatch_MaxOperations(t *testing.T) {
	// Enough that it is not shorter to replace the list.
	long := strings.Repeat("x", 60)
	members := func(n int, v string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%05d":%s`, i, v)
		}
		return `{` + b.String()[1:] + `}`
	}
	elements := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+format, i)
		}
		return `[` + b.String()[1:] + `]`
	}
	for _, c := range []struct {
		name          string
		before, after string
		want          int // operations
	}{
		{"as many members as operations", members(10_000, "1"), members(10_000, "2"), 10_000},
		{"one more", `{"spec":` + members(10_001, "1") + `}`, `{"spec":` + members(10_001, "2") + `}`, 1},
		{"a member more in an object", `{"a":0,"spec":` + members(10_000, "1") + `}`, `{"a":1,"spec":` + members(10_000, "2") + `}`, 2},
		{"objects, each of which fits", members(4, members(3_000, "1")), members(4, members(3_000, "2")), 4},
		{"edits of elements", `{"l":` + elements(10_001, `{"name":"%d","x":"`+long+`","y":1}`) + `}`, `{"l":` + elements(10_001, `{"name":"%d","x":"`+long+`","y":2}`) + `}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := Patch([]byte(c.before), []byte(c.before), []byte(c.after), nil, false, true)
			expect.NoError(t, err)
			ops, err := jsonpatch.DecodePatch(got)
			expect.NoError(t, err)
			if len(ops) != c.want {
				t.Errorf("got %d operations, want %d", len(ops), c.want)
			}
			if !equal(decode(t, apply(t, []byte(c.before), got)), decode(t, []byte(c.after))) {
				t.Error("what the patch makes is not what was made")
			}
		})
	}
}

// A patch is not nested deeper than the API server reads.
func TestPatch_MaxDepth(t *testing.T) {
	nested := func(depth int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)
	}
	before := []byte(`{"a":1}`)
	got, _, err := Patch(before, before, nested(9_999), nil, false, true)
	expect.NoError(t, err)
	if patched := apply(t, before, got); !bytes.Equal(patched, nested(9_999)) {
		t.Errorf("got %.100s", patched)
	}
	for _, depth := range []int{10_000, 10_001} {
		if got, _, err := Patch(before, before, nested(depth), nil, false, true); err == nil || !strings.Contains(err.Error(), "nested deeper") {
			t.Errorf("%d levels: %.100s, %v", depth, got, err)
		}
	}
}

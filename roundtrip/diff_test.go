package roundtrip

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff_NamesWhatDiffers(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ want, got, diff string }{
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`, ``},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, "- a.c: 2\n+ a.c: 3"},
		{`{"a":null,"b":[],"c":{}}`, `{"a":[],"b":{}}`, "- a: null\n+ a: []\n- b: []\n+ b: {}\n- c: {}"},
		{`{"x":{"example.com/y":"<"}}`, `{"x":{}}`, "+ x: {}\n- x[\"example.com/y\"]: \"<\""},
		{`{"x":{"":null}}`, `{"x":null}`, "+ x: null\n- x[\"\"]: null"},
		{`{"a":[1,2,3]}`, `{"a":[1,3]}`, "- a[1]: 2\n+ a[1]: 3\n- a[2]: 3"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, "- a[0]: 1\n+ a[0]: 2\n- a[1]: 2\n+ a[1]: 1"},
		{`{"a":[1]}`, `{"a":[2,{"b":3}]}`, "- a[0]: 1\n+ a[0]: 2\n+ a[1].b: 3"},
		{`[]`, `1`, "- []\n+ 1"},
		{`"` + long + `a"`, `"` + long + `b"`, `- …` + strings.Repeat("x", 198) + "a\"\n+ …" + strings.Repeat("x", 198) + `b"`},
	} {
		got := ""
		if f := compare([]byte(c.want), []byte(c.got)); f != nil {
			got = f.diff()
		}
		if diff := cmp.Diff(c.diff, got); diff != "" {
			t.Errorf("%.40s and %.40s (-want +got):\n%s", c.want, c.got, diff)
		}
	}
}

func TestDiff_IsBounded(t *testing.T) {
	var want, got []any
	for i := range 1000 {
		want, got = append(want, strings.Repeat("x", 1000)), append(got, fmt.Sprint(i, strings.Repeat("y", 1000)))
	}
	diff := diffJSON(want, got)
	if lines := strings.Split(diff, "\n"); len(lines) != diffLines+1 || lines[diffLines] != "and more" || len(diff) > 2*diffLines*diffText {
		t.Errorf("%d lines, %d bytes:\n%s", len(lines), len(diff), diff)
	}
}

// To compare such values level by level, and each level twice, takes too
// long.
func TestCompare_DeepLists(t *testing.T) {
	deep := func(name string) []byte {
		return []byte(strings.Repeat(`{"steps":[`, 100) + name + strings.Repeat(`]}`, 100))
	}
	if f := compare(deep(`"a"`), deep(`"a"`)); f != nil {
		t.Error(f.diff())
	}
	f := compare(deep(`"a"`), deep(`"b"`))
	if f == nil || !strings.HasSuffix(f.diff(), `.steps[0]: "b"`) {
		t.Errorf("got %v", f)
	}
	nested := func(depth int) *class {
		schema := Schema{}
		for range depth {
			schema = Schema{AllOf: []Schema{schema}}
		}
		return &class{Variables: []Variable{{Schema: schema}}}
	}
	if f := differ(nested(100), nested(101)); !strings.HasSuffix(f.diff(), `.allOf[0].allOf[0]: {}`) {
		t.Error(f.diff())
	}
	// JSON does not show this one.
	odd, even := nested(100), nested(100)
	deepest := &even.Variables[0].Schema
	for deepest.AllOf != nil {
		deepest = &deepest.AllOf[0]
	}
	deepest.AllOf = []Schema{}
	if f := differ(odd, even); !strings.Contains(f.diff(), "AllOf:([]roundtrip.Schema)[] ") {
		t.Error(f.diff())
	}
}

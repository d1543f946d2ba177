package merge

import (
	"strconv"
	"testing"
)

// The corners of JSON and of JSON pointers.
func TestPatch_Corners(t *testing.T) {
	testPatches(t, []patchCase{
		// Numbers.
		{"and different keys",
			`{"l":[{"id":9007199254740992,"u":"…"},{"id":9007199254740993,"u":2}]}`, `{"l":[{"id":9007199254740992},{"id":9007199254740993}]}`, `{"l":[{"id":9007199254740993,"n":1},{"id":9007199254740992}]}`,
			`[{"op":"replace","path":"/l","value":[{"id":9007199254740993,"n":1,"u":2},{"id":9007199254740992,"u":"…"}]}]`},
		{"one beyond 64 bits keeps its digits",
			`{"n":123456789012345678901234567890,"m":1}`, `{"n":1.2345678901234568e+29,"m":1}`, `{"n":1.2345678901234568e+29,"m":2}`,
			`[{"op":"replace","path":"/m","value":2}]`},
		{"1 becomes 1.0 where before has 1",
			`{"n":1}`, `{"n":1}`, `{"n":1.0}`,
			`[{"op":"replace","path":"/n","value":1.0}]`},
		{"but not where raw has it already",
			`{"n":1.0}`, `{"n":1}`, `{"n":1.0}`,
			``},
		{"a number that another begins with is not that one",
			`{"l":[1,12,"…"],"n":1}`, `{"l":[1,12,"…"],"n":1}`, `{"l":[12,1,"…"],"n":12}`,
			`[{"op":"replace","path":"/l","value":[12,1,"…"]},{"op":"replace","path":"/n","value":12}]`},

		// Null, absence and empty, in a list.
		{"a null element goes",
			`{"l":[null,{"u":"…"},null]}`, `{"l":[null,{},null]}`, `{"l":[null,{}]}`,
			`[{"op":"remove","path":"/l/2"}]`},
		{"a list becomes empty, absent and null",
			`{"a":[1],"b":[1],"c":[1]}`, `{"a":[1],"b":[1],"c":[1]}`, `{"a":[],"c":null}`,
			`[{"op":"remove","path":"/a/0"},{"op":"remove","path":"/b"},{"op":"replace","path":"/c","value":null}]`},

		// Duplicates.
		{"a duplicate in raw that is spelled otherwise counts",
			`{"a":{"u":1,"x":1},"\u0061":{"u":2,"x":1}}`, `{"a":{"x":1}}`, `{"a":{"x":2}}`,
			`[{"op":"replace","path":"/a/x","value":2}]`},
		{"a duplicate in after overrides one that has not changed",
			`{"a":{"x":1},"b":1}`, `{"a":{"x":1},"b":1}`, `{"a":{"x":1},"a":{"x":2},"b":1}`,
			`[{"op":"replace","path":"/a/x","value":2}]`},
		{"a duplicate in before is overridden by one that has not changed",
			`{"a":{"x":1},"b":1}`, `{"a":{"x":0},"a":{"x":1},"b":1}`, `{"a":{"x":1},"b":2}`,
			`[{"op":"replace","path":"/b","value":2}]`},
		{"duplicates in elements do not make them others",
			`{"l":[{"name":"a","name":"b","u":1},"…"]}`, `{"l":[{"name":"a","name":"b"},"…"]}`, `{"l":[{"name":"b","n":1},"…"]}`,
			`[{"op":"add","path":"/l/0/n","value":1}]`},

		// Names and pointers.
		{"a member may be named like an index, or like the end of a list",
			`{"0":1,"-":{"-":1}}`, `{"0":1,"-":{"-":1}}`, `{"0":2,"-":{"-":2,"1":1}}`,
			`[{"op":"replace","path":"/-/-","value":2},{"op":"add","path":"/-/1","value":1},{"op":"replace","path":"/0","value":2}]`},
		{"an escaped name is another one than its spelling",
			`{"a":1,"\\u0061":1}`, `{"a":1,"\\u0061":1}`, `{"\\u0061":2,"\u0061":1}`,
			`[{"op":"replace","path":"/\\u0061","value":2}]`},

		// Indexes are right when their turn comes.
		{"a remove before an edit, and an add before another",
			`{"l":[{"name":"a"},{"name":"b","u":"…"},{"name":"c","u":"…"}]}`, `{"l":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"l":[{"name":"b","n":1},{"name":"x"},{"name":"c","n":2}]}`,
			`[{"op":"remove","path":"/l/0"},{"op":"add","path":"/l/0/n","value":1},{"op":"add","path":"/l/1","value":{"name":"x"}},{"op":"add","path":"/l/2/n","value":2}]`},
		{"more elements removed than are looked ahead for",
			`{"l":[0,1,2,3,4,5,6,7,8,9,10,11,12,{"u":"…"},{"u":"…"}]}`, `{"l":[0,1,2,3,4,5,6,7,8,9,10,11,12,{},{}]}`, `{"l":[12,{},{}]}`,
			`[` + removals(11) + `]`},
	})
}

// removals are the operations that remove the first elements of /l, down from that index.
func removals(index int) string {
	const end = `{"op":"remove","path":"/l/0"}`
	if index == 0 {
		return end
	}
	return `{"op":"remove","path":"/l/` + strconv.Itoa(index) + `"},` + removals(index-1)
}

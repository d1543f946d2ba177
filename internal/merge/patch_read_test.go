package merge

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// manyEdits needs all that a reader has: it adds, removes and edits in a
// list with a key, with white space, duplicates and unknown members in raw.
func manyEdits() (raw, before, after []byte) {
	var raws, befores []string
	for i := range 40 {
		befores = append(befores, fmt.Sprintf(`{"name":"n%d","v":{"a":%d}}`, i, i))
		raws = append(raws, fmt.Sprintf(`{ "u":%d, "name":"n%d","v":{"a":0,"a":%d}}`, i, i, i))
	}
	afters := slices.Clone(befores)
	afters[30] = `{"name":"n30","v":{"a":7}}`
	afters = slices.Delete(afters, 20, 23)
	afters = slices.Insert(afters, 0, `{"name":"new"}`)
	object := func(l []string) []byte { return []byte(`{"l":[` + strings.Join(l, ",") + `],"m":{"x":1}}`) }
	return object(raws), object(befores), object(afters)
}

func TestReader_KeepsNothingOfItsInputs(t *testing.T) {
	r := new(reader)
	raw, before, after := manyEdits()
	if got, _, err := r.makePatch(raw, before, after, nil, true); err != nil || got == nil {
		t.Fatal(string(got), err)
	}
	r.reset()
	zero := func(what string, used any) {
		v := reflect.ValueOf(used)
		if v = v.Slice(0, v.Cap()); v.Len() == 0 {
			t.Errorf("%s: there is no memory to look at", what)
		}
		for i := range v.Len() {
			if !v.Index(i).IsZero() {
				t.Errorf("%s: place %d holds %v", what, i, v.Index(i))
			}
		}
	}
	zero("nodes", r.nodes.used)
	zero("lists", r.lists.used)
	zero("stack", r.stack)
	zero("operations", r.patch.ops)
	zero("path", r.patch.path)
}

// A reader gives back the memory of a huge object.
func TestReader_HugeObject(t *testing.T) {
	list := func(first int) []byte {
		var b bytes.Buffer
		for i := range 20_000 {
			fmt.Fprintf(&b, `,{"v":%d}`, first+i)
		}
		return slices.Concat([]byte(`{"l":[`), b.Bytes()[1:], []byte(`]}`))
	}
	r := new(reader)
	if got, _, err := r.makePatch(list(0), list(0), list(5), nil, true); err != nil || got == nil {
		t.Fatal(string(got), err)
	}
	r.reset()
	if n := cap(r.nodes.used) + cap(r.lists.used) + cap(r.ints.used) + cap(r.spans) + cap(r.stack); n > 1<<17 {
		t.Errorf("it keeps memory for %d elements", n)
	}
}

// Neither what a reader has read before nor the seed of its hash is in a patch.
func TestReader_NewMakesTheSameBytes(t *testing.T) {
	raw, before, after := manyEdits()
	want, _, err := Patch(raw, before, after, nil, false, true)
	expect.NoError(t, err)
	old := new(reader)
	for range 50 {
		for _, r := range []*reader{old, new(reader)} {
			got, _, err := r.makePatch(raw, before, after, nil, true)
			expect.NoError(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatalf("patch (-want +got):\n%s", diff)
			}
			r.reset()
		}
	}
}

func TestPatch_StaysWhileOthersAreMade(t *testing.T) {
	raw, before, after := manyEdits()
	want, _, err := Patch(raw, before, after, nil, false, true)
	expect.NoError(t, err)
	want = bytes.Clone(want)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			var kept [][]byte
			for i := range 50 {
				got, _, err := Patch(raw, before, after, nil, false, true)
				if err != nil {
					t.Error(err)
				}
				kept = append(kept, got)
				other := fmt.Appendf(nil, `{"l":%d}`, 1000*n+i)
				if got, _, err := Patch(raw, before, other, nil, false, true); err != nil || !strings.Contains(string(got), string(other[5:len(other)-1])) {
					t.Errorf("to %s: %s, %v", other, got, err)
				}
			}
			for _, got := range kept {
				if !bytes.Equal(got, want) {
					t.Errorf("a patch became %s", got)
				}
			}
		})
	}
	all.Wait()
}

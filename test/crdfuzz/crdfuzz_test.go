package crdfuzz

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

func TestSuite_MostAreServed(t *testing.T) {
	const n = 60
	valid, before := 0, 0
	begin := time.Now()
	for i := range n {
		made, err := Suite(1, i, 20)
		expect.NoError(t, err)
		if made.Suite == nil {
			continue
		}
		valid++
		if made.Suite.Before != nil {
			before++
		}
	}
	t.Logf("%d of %d, %d with another one before, in %s", valid, n, before, time.Since(begin))
	if valid < n*8/10 || before < n/4 {
		t.Errorf("%d of %d can be made valid, and %d have another one before", valid, n, before)
	}
}

// A suite is a function of its seed.
func TestSuite_Deterministic(t *testing.T) {
	first, err := Suite(7, 3, 20)
	expect.NoError(t, err)
	again, err := Suite(7, 3, 20)
	expect.NoError(t, err)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
}

func TestMutation_LeavesTheObjectAlone(t *testing.T) {
	for i := range 200 {
		m := newMaker(choices.New(1, t.Name(), i))
		o := object{"spec": object{"a": []any{int64(1), object{"b": "c"}}, "d": nil}, "status": object{"x": 1.5}}
		before := clone(o)
		_ = m.mutate(o)
		if diff := cmp.Diff(before, o); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	}
}

func TestPath_Split(t *testing.T) {
	for path, want := range map[string][]string{
		"spec.versions[0].schema.openAPIV3Schema.properties[a.b/c].default": {"spec", "versions", "0", "schema", "openAPIV3Schema", "properties", "a.b/c", "default"},
		"a[0][1].b": {"a", "0", "1", "b"},
		"":          nil,
	} {
		if diff := cmp.Diff(want, split(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// A key can be there twice.
func TestMembers_KeyTwice(t *testing.T) {
	text, err := json.Marshal(object{"a": members{{"b", 1}, {"b", json.Number("2.0")}}})
	if err != nil || string(text) != `{"a":{"b":1,"b":2.0}}` {
		t.Errorf("got %s, %v", text, err)
	}
}

package threeway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crdkit/crdkit/internal/threeway"
)

func TestNear(t *testing.T) {
	b := []byte(`{"spec":{"toppings":[{"name":"a"},{"name":"b"}],"list":[1,2]}}`)
	h := []byte(`{"spec":{"toppings":[{"name":"a","x":1,"y":1},{"name":"b","x":2}],"list":[1,2,3],"weights":{"a":1,"b":2}},"motto":"m"}`)
	changes := diff(t, b, h).Parts()
	all := make([]int, len(changes))
	for i := range all {
		all[i] = i
	}
	for shown, want := range map[string][]string{
		`{"spec":{"toppings":[{"name":"a","size":9},{"name":"b"}],"list":[1,2]}}`: {
			`spec.toppings[{"name":"a"}].x`, `spec.toppings[{"name":"a"}].y`},
		`{"spec":{"toppings":[{"name":"a"},{"name":"b"}],"list":[1],"weights":{"b":9}}}`: {
			`spec.list`, `spec.weights.b`},
		`{"spec":{"toppings":[{"name":"a"},{"name":"b"},{"name":"c"}],"list":[1,2]}}`: {
			`spec.toppings[{"name":"a"}].x`, `spec.toppings[{"name":"a"}].y`, `spec.toppings[{"name":"b"}].x`},
		`{"spec":{"toppings":[{"name":"a"},{"name":"b"}],"list":[1,2]},"motto":"n"}`: {`motto`},
	} {
		var got []string
		for _, set := range changes.Near(all, diff(t, b, []byte(shown))) {
			for _, i := range set {
				got = append(got, changes[i].Path())
			}
		}
		less := func(a, b string) bool { return a < b }
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(less)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", shown, diff)
		}
	}
}

// An element that the user removed with all its neighbors is made again, if that is asked for.
func TestApplyAs_MakesWhatIsMissing(t *testing.T) {
	b := []byte(`{"spec":{"toppings":[{"name":"a"}],"oven":{"heat":1},"list":[1]}}`)
	h := []byte(`{"spec":{"toppings":[{"name":"a","x":1},{"name":"b"}],"oven":{"heat":1,"fan":true},"list":[1,2]}}`)
	changes := diff(t, b, h)
	modes := make([]threeway.Mode, len(changes))
	for i := range modes {
		modes[i] = threeway.Always
	}
	got, void, err := changes.ApplyAs([]byte(`{"spec":{"toppings":null}}`), testTree, modes, false)
	if err != nil || len(void) != 1 || !strings.Contains(changes[void[0]].Path(), `"a"`) {
		t.Errorf("void are %v, %v", void, err)
	}
	want := `{"spec":{"toppings":[{"name":"b"}],"oven":{"fan":true},"list":[2]}}`
	if diff := cmp.Diff(threeway.Decode(t, []byte(want)), threeway.Decode(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

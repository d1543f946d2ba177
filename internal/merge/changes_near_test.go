package merge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/merge"
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

// An element that the user removed with all its neighbors is made again, if that is asked for, and
// so is a map. Another object is made only in an unedited object.
func TestApply_MakesWhatIsMissing(t *testing.T) {
	b := []byte(`{"spec":{"toppings":[{"name":"a"}],"oven":{"heat":1},"list":[1],"labels":{"a":"b"}}}`)
	h := []byte(`{"spec":{"toppings":[{"name":"a","x":1},{"name":"b"}],"oven":{"heat":1,"fan":true},"list":[1,2],"labels":{"a":"b","c":"d"}}}`)
	maps := listmapkeys.OfSchema(map[string]any{"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{
		"labels": map[string]any{"additionalProperties": map[string]any{"type": "string"}},
	}}}})
	changes := diff(t, b, h)
	modes := make([]merge.Mode, len(changes))
	for i := range modes {
		modes[i] = merge.Always
	}
	for unedited, want := range map[bool]string{
		false: `{"spec":{"toppings":[{"name":"b"}],"list":[2],"labels":{"c":"d"}}}`,
		true:  `{"spec":{"toppings":[{"name":"b"}],"list":[2],"labels":{"c":"d"},"oven":{"fan":true}}}`,
	} {
		got, void, err := changes.Apply([]byte(`{"spec":{"toppings":null}}`), testTree, func() *listmapkeys.Tree { return maps }, modes, unedited)
		var left []string
		for _, i := range void {
			left = append(left, changes[i].Path())
		}
		wantLeft := []string{"spec.oven.fan", `spec.toppings[{"name":"a"}].x`}
		if unedited {
			wantLeft = wantLeft[1:]
		}
		if diff := cmp.Diff(wantLeft, left); err != nil || diff != "" {
			t.Errorf("unedited %t: void (-want +got):\n%s, %v", unedited, diff, err)
		}
		if diff := cmp.Diff(merge.Decode(t, []byte(want)), merge.Decode(t, got)); diff != "" {
			t.Errorf("unedited %t (-want +got):\n%s", unedited, diff)
		}
	}
}

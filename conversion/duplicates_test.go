package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A list that the user left alone keeps its hidden fields, whichever of its elements are equal in the
// spoke, when a hidden field elsewhere contradicts an edit.
func TestLossless_UntouchedListWithDuplicates(t *testing.T) {
	for _, ponds := range []string{
		`[{"name":"a","note":"x"},{"name":"a"},{"name":"a","note":"x"}]`,
		`[{"name":"a","note":"x"},{"name":"a","note":"y"},{"name":"a"},{"name":"a"},{"name":"a","note":"x"}]`,
		`[{"name":"a","note":"x"},{"name":"w","hidden":true},{"name":"a"},{"name":"a","note":"x"}]`,
	} {
		reg := release{}.farms(t, poolKeys)
		got := edited(t, reg, reg, `{"ponds":`+ponds+`,"pools":[{"name":"p","size":5}],"weights":{"p":5}}`, func(f *oldFarm) { f.Spec.Pools[0].Size = 2 })
		if diff := cmp.Diff(into[any](t, `{"ponds":`+ponds+`,"pools":[{"name":"p","size":2}]}`), into[any](t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ponds, diff)
		}
	}
}

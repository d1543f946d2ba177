package merge_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/merge"
)

func TestEqualButEmpty(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{}`, `{"a":{}}`, true},
		{`{"b":1}`, `{"a":{"x":[],"y":{}},"b":1,"c":[]}`, true},
		{`{"l":[{"a":[]},1]}`, `{"l":[{},1]}`, true},
		{`{"l":[1]}`, `{"l":[1,{}]}`, false},
		{`{"l":[]}`, `{"l":[[]]}`, false},
		{`{}`, `{"l":[{}]}`, false},
		{`{}`, `{"a":null}`, false},
		{`{}`, `{"a":{"x":""}}`, false},
		{`{"a":[]}`, `{"a":{}}`, false},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":"\u003c"}`, `{"a":"<"}`, true},
	} {
		a, errA := merge.Read([]byte(c.a))
		b, errB := merge.Read([]byte(c.b))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.EqualButEmpty(b) != c.want || b.EqualButEmpty(a) != c.want {
			t.Errorf("%s and %s: want %t", c.a, c.b, c.want)
		}
	}
}

package roundtrip

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// value decodes JSON such that two values are equal if their texts say the same: null, []
// and {} and absence all differ, and so do 1 and 1.0. The order of members does not count.
func value(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// compare returns how got differs from want; nil if it does not.
func compare(want, got []byte) *failure {
	wanted, err := value(want)
	if err != nil {
		return &failure{err: err}
	}
	v, err := value(got)
	if err != nil {
		return &failure{err: err}
	}
	if reflect.DeepEqual(wanted, v) {
		return nil
	}
	return &failure{diff: func() string { return diffJSON(wanted, v) }}
}

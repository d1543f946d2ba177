package crdfuzz

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/choices"
)

// object is an object of JSON, and so is a schema. Numbers are int64, float64, or
// json.Number where the way in which they are written counts.
type object = map[string]any

// maker draws. A draw of zero is the ordinary thing.
type maker struct {
	*rand.Rand
	draws *choices.Source // of the randomness
}

func newMaker(src *choices.Source) maker { return maker{rand.New(src), src} }

// rarely is true once in n times.
func (m maker) rarely(n int) bool { return m.Intn(n) == n-1 }

// often is true except once in n times.
func (m maker) often(n int) bool { return !m.rarely(n) }

// one is one of the values.
func one[T any](m maker, of ...T) T { return of[m.Intn(len(of))] }

// word is one of the words of a text.
func (m maker) word(text string) string { return one(m, strings.Fields(text)...) }

// key returns a key of an object; ok is false if the object is empty.
func (m maker) key(o object) (string, bool) {
	if len(o) == 0 {
		return "", false
	}
	return one(m, sortedKeys(o)...), true
}

func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }

// clone copies JSON deeply.
func clone[T any](v T) T { return cloneAny(v).(T) }

func cloneAny(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for k, e := range v {
			out[k] = cloneAny(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneAny(e)
		}
		return out
	}
	return v
}

// members is an object of JSON in which a key may be there twice.
type members []member

type member struct {
	key   string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (m members) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, e := range m {
		if i > 0 {
			text = append(text, ',')
		}
		key, err := json.Marshal(e.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, key...), ':'), value...)
	}
	return append(text, '}'), nil
}

var _ json.Marshaler = members(nil)

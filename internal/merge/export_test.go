package merge

import (
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

const MaxPath = maxPath

// Helpers that the tests of patches and those of changes share.
type Failer = failer

var (
	Decode = decode
	Encode = encode
)

func PathLength(c Change) int { return len(c.path) }

// ApplyUnedited applies changes where the user has not edited the object.
func (c Changes) ApplyUnedited(edited []byte, keys *listmapkeys.Tree) ([]byte, error) {
	text, _, err := c.Apply(edited, keys, nil, make([]Mode, len(c)), false)
	return text, err
}

// Hash returns what a change remembers of a value.
func Hash(text []byte) string {
	n, err := read(text)
	if err != nil {
		panic(err)
	}
	return n.hash()
}

// KeysOf returns the keys of one list.
func KeysOf(path string, keys ...string) *listmapkeys.Tree {
	var names []any
	for _, key := range keys {
		names = append(names, key)
	}
	schema := map[string]any{"x-kubernetes-list-map-keys": names}
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		schema = map[string]any{"properties": map[string]any{name: schema}}
	}
	return listmapkeys.OfSchema(schema)
}

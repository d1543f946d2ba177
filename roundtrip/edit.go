package roundtrip

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// edit gives top-level members of an object the values that they have in another one, or none, if
// that has none; except for those that each object has. A member stays if its bit is set, so that
// the small numbers which choices.Shrink tries change most members.
func edit(object, as []byte, keep uint64) ([]byte, error) {
	var edited, others map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(object, &edited), json.Unmarshal(as, &others)); err != nil {
		return nil, err
	}
	all := maps.Clone(edited)
	maps.Copy(all, others)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		if keep&1 == 0 {
			if delete(edited, name); others[name] != nil {
				edited[name] = others[name]
			}
		}
		keep >>= 1
	}
	return json.Marshal(edited)
}

// withMetadataOf returns an object with the metadata of another one.
func withMetadataOf(other, object []byte) []byte {
	return set(object, "metadata", rawjson.At(other, "metadata"))
}

// forget returns an object without labels and annotations.
func forget(object []byte) []byte {
	return withPairs(withPairs(object, "labels", nil), "annotations", nil)
}

const addedKey = "example.com/added"

// withAdded returns an object with one more label and annotation.
func withAdded(object []byte) []byte {
	for _, name := range []string{"labels", "annotations"} {
		pairs := pairsOf(object, name)
		pairs[addedKey] = "x"
		object = withPairs(object, name, pairs)
	}
	return object
}

// overwriteAnnotations changes the annotations that a conversion added to an object.
func overwriteAnnotations(original, object []byte, draw uint64) []byte {
	has, had := pairsOf(object, "annotations"), pairsOf(original, "annotations")
	for name := range has {
		if _, ok := had[name]; !ok && name != lossless.Annotation {
			has[name] = "{" + generate.Text(draw)
		}
	}
	if len(has) == 0 {
		return object
	}
	return withPairs(object, "annotations", has)
}

// pairsOf returns the labels or annotations of an object.
func pairsOf(object []byte, name string) map[string]string {
	pairs := map[string]string{}
	if text := rawjson.At(object, "metadata", name); text != nil && string(text) != "null" {
		mustDecode(text, &pairs)
	}
	return pairs
}

// withPairs returns an object with other labels or annotations, or without any if pairs is nil.
func withPairs(object []byte, name string, pairs map[string]string) []byte {
	var text []byte
	if pairs != nil {
		text = mustEncode(pairs)
	}
	metadata := rawjson.At(object, "metadata")
	if metadata == nil {
		metadata = []byte("{}")
	}
	return set(object, "metadata", set(metadata, name, text))
}

// set returns the text of a JSON object with another member, or without it if value is nil.
func set(object []byte, name string, value []byte) []byte {
	object, err := rawjson.Set(object, name, value)
	if err != nil {
		panic(err) // impossible for an object that the registry has read or made
	}
	return object
}

package roundtrip

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/internal/generate"
)

// members are the members of a JSON object, and their texts.
type members map[string]json.RawMessage

// decodeMembers returns the members of an object, and those of its metadata.
func decodeMembers(object []byte) (m, metadata members, err error) {
	if err := json.Unmarshal(object, &m); err != nil {
		return nil, nil, err
	}
	if text, ok := m["metadata"]; ok {
		err = json.Unmarshal(text, &metadata)
	}
	return m, metadata, err
}

// withMetadata returns the object with this metadata.
func (m members) withMetadata(metadata members) ([]byte, error) {
	text, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	m["metadata"] = text
	return json.Marshal(m)
}

// edit gives top-level members of an object the values that they have in another one, or none, if
// that has none; except for those that each object has. A member stays if its bit is set, so that
// the small numbers which choices.Shrink tries change most members.
func edit(object, as []byte, keep uint64) ([]byte, error) {
	edited, _, err := decodeMembers(object)
	others, _, errOthers := decodeMembers(as)
	if err := errors.Join(err, errOthers); err != nil {
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
func withMetadataOf(other, object []byte) ([]byte, error) {
	m, _, err := decodeMembers(object)
	from, _, errOther := decodeMembers(other)
	if err := errors.Join(err, errOther); err != nil {
		return nil, err
	}
	if delete(m, "metadata"); from["metadata"] != nil {
		m["metadata"] = from["metadata"]
	}
	return json.Marshal(m)
}

// forget returns an object without labels and annotations.
func forget(object []byte) ([]byte, error) {
	m, metadata, err := decodeMembers(object)
	if err != nil || metadata == nil {
		return object, err
	}
	delete(metadata, "labels")
	delete(metadata, "annotations")
	return m.withMetadata(metadata)
}

// fixedMetadata returns the text of each member of metadata that no conversion may change.
func fixedMetadata(object []byte) ([]byte, error) {
	_, metadata, err := decodeMembers(object)
	texts := map[string]string{}
	for name, text := range metadata {
		if name != "labels" && name != "annotations" {
			texts[name] = string(text)
		}
	}
	text, errText := json.Marshal(texts)
	return text, errors.Join(err, errText)
}

// overwriteAnnotations changes the annotations that a conversion added to an object.
func overwriteAnnotations(original, object []byte, draw uint64) ([]byte, error) {
	m, metadata, err := decodeMembers(object)
	_, originally, errOriginal := decodeMembers(original)
	has, errHas := metadata.annotations()
	had, errHad := originally.annotations()
	if err := errors.Join(err, errOriginal, errHas, errHad); err != nil {
		return nil, err
	}
	gained := false
	for name := range has {
		if _, ok := had[name]; !ok && name != lossless.Annotation {
			has[name] = "{" + generate.Text(draw)
			gained = true
		}
	}
	if !gained {
		return object, nil
	}
	if metadata["annotations"], err = json.Marshal(has); err != nil {
		return nil, err
	}
	return m.withMetadata(metadata)
}

// annotations returns those of metadata.
func (m members) annotations() (all map[string]string, err error) {
	if text, ok := m["annotations"]; ok {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

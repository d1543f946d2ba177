// Package lost is the annotation of a spoke with the fields of its hub that the spoke cannot
// express. Package conversion writes and reads it; conversion/lossless reads it for operators that
// convert without package conversion.
package lost

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Payload holds the parts of an object that a conversion may change. The body is a JSON object of
// all members except for apiVersion, kind and metadata.
type Payload struct {
	Body                []byte
	Labels, Annotations map[string]string
}

// Convert converts a payload to another version. It neither changes the payload nor shares memory
// with it.
type Convert func(ctx context.Context, p Payload) (Payload, error)

// Clone returns a deep copy.
func (p Payload) Clone() Payload {
	return Payload{bytes.Clone(p.Body), maps.Clone(p.Labels), maps.Clone(p.Annotations)}
}

// Without returns the payload without some annotations.
func (p Payload) Without(keys ...string) Payload {
	for _, key := range keys {
		if _, ok := p.Annotations[key]; ok {
			p.Annotations = maps.Clone(p.Annotations)
			delete(p.Annotations, key)
		}
	}
	return p
}

// SameMetadata reports whether two payloads have the same labels and annotations.
func (p Payload) SameMetadata(other Payload) bool {
	return maps.Equal(p.Labels, other.Labels) && maps.Equal(p.Annotations, other.Annotations)
}

// Document returns the payload as one JSON object, with its labels and annotations.
func (p Payload) Document() ([]byte, error) {
	metadata, err := json.Marshal(metadataOf{p.Labels, p.Annotations})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(p.Body, "metadata", metadata)
}

// Read reads the payload as one object, with its labels and annotations.
func (p Payload) Read() (merge.Object, error) {
	document, err := p.Document()
	if err != nil {
		return merge.Object{}, err
	}
	return merge.Read(document)
}

// payloadOf returns the payload of a document: see [Payload.Document].
func payloadOf(document []byte) (p Payload, err error) {
	var metadata metadataOf
	if text := rawjson.At(document, "metadata"); text != nil {
		if err := codec.Decode(text, &metadata); err != nil {
			return Payload{}, err
		}
	}
	p = Payload{Labels: metadata.Labels, Annotations: metadata.Annotations}
	p.Body, err = codec.AppendBody(nil, document)
	return p, err
}

type metadataOf struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

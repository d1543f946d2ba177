package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns what the server answers when it is asked for an object that it has stored,
// in any version: the object is pruned and gets its defaults by the schema of the version
// in which it is stored; then, if this version is another one, it is converted and pruned
// again, but gets no defaults of this version. Metadata that are not valid are dropped
// (customresource_handler.go, crdConversionRESTOptionsGetter). The stored object is JSON or
// YAML, and the result's Stored is nil. It must not be changed by a webhook on the way:
// where one converts, that is an error, and the caller has to convert first.
func (v *Version) Read(ctx context.Context, stored []byte) (*Result, error) {
	_, r, err := v.begin(ctx, "get", nil)
	if err != nil {
		return r.fail(err)
	}
	u, err := v.definition.parseStored(stored)
	if err != nil {
		return r.fail(err)
	}
	if err := v.restore(u); err != nil {
		return r.fail(err)
	}
	return r.answer(r.result(), u)
}

// parseStored decodes a stored object, from JSON or YAML.
func (d *Definition) parseStored(stored []byte) (*unstructured.Unstructured, error) {
	if len(stored) > maxRequest {
		return nil, fmt.Errorf("schema: the stored object has %d bytes: the limit is %d", len(stored), maxRequest)
	}
	if !utilyaml.IsJSONBuffer(stored) {
		var err error
		if stored, err = yaml.YAMLToJSON(stored); err != nil {
			return nil, fmt.Errorf("schema: the stored object: %w", err)
		}
	}
	u := &unstructured.Unstructured{}
	if _, _, err := unstructured.UnstructuredJSONScheme.Decode(stored, nil, u); err != nil {
		return nil, fmt.Errorf("schema: the stored object: %w", err)
	}
	if gvk := u.GroupVersionKind(); gvk.GroupKind() != d.GroupKind() || d.versions[gvk.Version] == nil {
		return nil, fmt.Errorf("schema: the stored object is a %s, not a %s in one of the versions %s", gvk, d.GroupKind(), strings.Join(d.names, ", "))
	}
	if _, found := u.Object["metadata"]; !found {
		return nil, errors.New("schema: the stored object has no metadata")
	}
	return u, nil
}

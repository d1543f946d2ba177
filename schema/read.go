package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns what the server answers when it is asked for an object that it has stored,
// in any version: the object is pruned and gets its defaults by the schema of the version
// in which it is stored; then, if this version is another one, it is converted and pruned
// again, but gets no defaults of this version. Metadata that are not valid are dropped
// (customresource_handler.go, crdConversionRESTOptionsGetter). The stored object is JSON or
// YAML. It must not be changed by a webhook on the way: where one converts, that is an
// error, and the caller has to convert first.
func (v *Version) Read(ctx context.Context, stored []byte) (*Result, error) {
	_, r, err := v.begin(ctx, nil)
	if err != nil {
		return r.fail(err)
	}
	u, err := v.read(stored)
	if err != nil {
		return r.fail(err)
	}
	out := &Result{Stored: stored, Warnings: r.warnings}
	if out.Object, err = json.Marshal(u.Object); err != nil {
		return r.fail(err)
	}
	return out, nil
}

// read decodes a stored object.
func (v *Version) read(stored []byte) (*unstructured.Unstructured, error) {
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
	if u.GroupVersionKind().GroupKind() != v.definition.GroupKind() {
		return nil, fmt.Errorf("schema: the stored object is a %s, not a %s", u.GroupVersionKind(), v.definition.GroupKind())
	}
	if _, found := u.Object["metadata"]; !found {
		return nil, errors.New("schema: the stored object has no metadata")
	}
	u, err := v.fromStorage(u)
	if err != nil {
		return nil, fmt.Errorf("schema: the stored object: %w", err)
	}
	return u, nil
}

// fromStorage does what the server does to an object that it has decoded from storage, in
// place.
func (v *Version) fromStorage(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := v.definition.restore(u); err != nil {
		return nil, err
	}
	return v.definition.convert(u, v.name)
}

// restore is the part of that which comes before a conversion.
func (d *Definition) restore(u *unstructured.Unstructured) error {
	if _, err := d.coerce(u, coercion{dropInvalidMetadata: true, repairGeneration: true}); err != nil {
		return err
	}
	d.setDefaults(u)
	return nil
}

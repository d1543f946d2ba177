package schema

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns what the server answers when it is asked for an object that it has stored, in any
// version: the object is pruned and gets its defaults by the schema of the version in which it is
// stored; then, if this version is another one, it is converted and pruned again, but gets no
// defaults of this version. Invalid metadata is dropped. The stored object is JSON or YAML, and
// the result's Stored is nil. If a webhook would convert the object, that is an error
// (customresource_handler.go, crdConversionRESTOptionsGetter).
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
	return r.answer(&Result{Warnings: r.warnings}, u)
}

// parseStored decodes a stored object, from JSON or YAML.
func (d *Definition) parseStored(stored []byte) (*unstructured.Unstructured, error) {
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
	return u, nil
}

// restore does, in place, what the server does to an object that it has decoded from storage:
// it is coerced and gets its defaults in the version in which it is stored, and is converted
// to this one (customresource_handler.go, crdConversionRESTOptionsGetter).
func (v *Version) restore(u *unstructured.Unstructured) error {
	if _, err := v.definition.coerce(u, true, false); err != nil {
		return internalError(err.Error())
	}
	v.definition.setDefaults(u)
	return v.definition.convert(u, v.name)
}

// convert converts an object to another version, in place, where that takes no webhook: only
// apiVersion changes, and what the schema of that version does not have is pruned
// (apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go).
func (d *Definition) convert(u *unstructured.Unstructured, version string) error {
	if from := u.GroupVersionKind().Version; from != version && d.crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		return fmt.Errorf("schema: the object has version %s, and a webhook converts it to %s: convert it first", from, version)
	}
	u.SetAPIVersion(schema.GroupVersion{Group: d.crd.Spec.Group, Version: version}.String())
	if _, err := d.coerce(u, false, false); err != nil {
		return internalError(err.Error())
	}
	return nil
}

// internalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func internalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

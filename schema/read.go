package schema

import (
	"cmp"
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

// Read returns the response to a GET request in this version, for an object that is stored in any
// version. The object is pruned and defaulted by the schema of the stored version. If that is
// another version, the object is then converted and pruned again, but does not get the defaults of
// this version. Invalid metadata is dropped.
//
// The stored object is JSON or YAML, and the result has no Stored. Read returns an error if a
// webhook would have to convert the object, and [Convert] is not given.
//
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
// crdConversionRESTOptionsGetter)
func (v *Version) Read(ctx context.Context, stored []byte, opts ...Option) (*Result, error) {
	ctx, r, err := v.begin(ctx, "get", opts)
	if err != nil {
		return r.fail(err)
	}
	u, err := v.definition.parseStored(stored)
	if err != nil {
		return r.fail(err)
	}
	if err := r.restore(ctx, u); err != nil {
		return r.fail(err)
	}
	return r.answer(u, nil)
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
		return nil, fmt.Errorf("schema: the stored object has kind %s in %s, expected %s in one of the versions %s", gvk.Kind, gvk.GroupVersion(), d.GroupKind(), strings.Join(d.names, ", "))
	}
	return u, nil
}

// restore does, in place, what the server does to an object that it has decoded from storage: it
// coerces and defaults the object in its stored version, and converts it to this one
// (customresource_handler.go, crdConversionRESTOptionsGetter).
func (r *request) restore(ctx context.Context, u *unstructured.Unstructured) error {
	if _, err := r.definition.kind.Coerce(u, true, false); err != nil {
		return internalError(err.Error())
	}
	r.definition.kind.Default(u)
	return r.convert(ctx, u, r.name)
}

// convert converts an object to another version, in place, and prunes the fields that the schema of
// that version lacks. Without a webhook, only apiVersion changes
// (apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go).
func (r *request) convert(ctx context.Context, u *unstructured.Unstructured, version string) error {
	to := schema.GroupVersion{Group: r.definition.crd.Spec.Group, Version: version}
	if from := u.GroupVersionKind().Version; from != version && r.definition.usesWebhook() {
		if r.webhook == nil {
			return fmt.Errorf("schema: the object has version %s, and a webhook converts it to %s: convert it first, or give Convert", from, version)
		}
		if err := r.callWebhook(ctx, u, to); err != nil {
			return cmp.Or(ctx.Err(), internalError(err.Error()))
		}
	}
	u.SetAPIVersion(to.String())
	if _, err := r.definition.kind.Coerce(u, false, false); err != nil {
		return internalError(err.Error())
	}
	return nil
}

// usesWebhook reports whether a webhook converts the objects.
func (d *Definition) usesWebhook() bool {
	return d.crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// internalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func internalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

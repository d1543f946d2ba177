package schema

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Stages is the pipeline in pieces, for a caller that brings what the server asks others
// for: conversion and admission by webhooks, and storage. Package schema/offline is one.
// Who has no webhooks needs none of this.
//
// In this order, a write is [Stages.Create] or [Stages.Update], validating admission, a
// conversion to the storage version and [Stages.Coerce]; a read is [Stages.Decode], a
// conversion to the version of the request and [Stages.Coerce]. An object that is not
// converted is not coerced (apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
// crdConversionRESTOptionsGetter).
type Stages struct{ definition *Definition }

// Stages returns the pieces of the pipeline.
func (d *Definition) Stages() Stages { return Stages{d} }

// CustomResourceDefinition returns a copy of the definition, with its defaults.
func (s Stages) CustomResourceDefinition() *apiextensionsv1.CustomResourceDefinition {
	return s.definition.crd.DeepCopy()
}

// Serve begins a request that is none of those below: the warnings are of a version that
// is deprecated; the error is NotFound if the version is not served, or says that it is not
// there.
func (s Stages) Serve(ctx context.Context, version string) (warnings []string, err error) {
	_, r, err := s.definition.Version(version).begin(ctx, nil)
	return r.warnings, err
}

// Create is [Version.Create] until validating admission: the result's Object is what
// validating webhooks are shown, in the version of the request and not converted; its
// Stored is nil. The function of [Mutate] is not followed by defaults: it sets them itself,
// where a webhook has changed something, in the version which that was shown.
func (s Stages) Create(ctx context.Context, version string, object []byte, opts ...Option) (*Result, error) {
	return s.definition.Version(version).Create(ctx, object, append(slices.Clip(opts), staged)...)
}

// Update is [Version.Update], or with status [Version.UpdateStatus], until validating
// admission: see [Stages.Create]. The old object is in the version of the request, as it
// comes out of the stages of a read, and gets no defaults of that version. It is not changed.
func (s Stages) Update(ctx context.Context, version string, object []byte, old map[string]any, status bool, opts ...Option) (*Result, error) {
	ctx, r, err := s.definition.Version(version).begin(ctx, append(slices.Clip(opts), staged))
	if err != nil {
		return r.fail(err)
	}
	return r.update(ctx, object, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(old)}, status)
}

// staged ends a request before validating admission.
func staged(r *request) { r.staged = true }

// Decode returns what the server makes of a stored object, in JSON, before it is converted:
// it is pruned and gets its defaults by the schema of the version in which it is stored,
// which need not be served. See [Version.Read].
func (s Stages) Decode(stored []byte) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	if _, _, err := unstructured.UnstructuredJSONScheme.Decode(stored, nil, u); err != nil {
		return nil, fmt.Errorf("schema: the stored object: %w", err)
	}
	if err := s.definition.restore(u); err != nil {
		return nil, fmt.Errorf("schema: the stored object: %w", err)
	}
	return u.Object, nil
}

// Coerce does, in place, what the server does to an object that a conversion has returned:
// by the schema of its own version, it is pruned, and nulls that are not nullable and have
// no default are removed; metadata that are not valid are an error (schemaCoercingConverter
// of customresource_handler.go).
func (s Stages) Coerce(object map[string]any) error {
	_, err := s.definition.coerce(&unstructured.Unstructured{Object: object}, coercion{})
	return err
}

// Default sets, in place, the defaults of the object's own version, as the server does
// after each mutating webhook (unstructuredDefaulter of customresource_handler.go).
func (s Stages) Default(object map[string]any) {
	s.definition.setDefaults(&unstructured.Unstructured{Object: object})
}

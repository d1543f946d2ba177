package schema

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	v := s.definition.unconverted().Version(version)
	out, err := v.Create(ctx, object, append(opts[:len(opts):len(opts)], v.defaultOnce)...)
	return out.unstored(), err
}

// Update is [Version.Update], or with status [Version.UpdateStatus], until validating
// admission: see [Stages.Create]. The old object is in the version of the request, as it
// comes out of the stages of a read, and gets no defaults of that version. It is not changed.
func (s Stages) Update(ctx context.Context, version string, object []byte, old map[string]any, status bool, opts ...Option) (*Result, error) {
	text, err := (&unstructured.Unstructured{Object: old}).MarshalJSON()
	if err != nil {
		return &Result{}, fmt.Errorf("schema: the old object: %w", err)
	}
	v := s.definition.unconverted().Version(version)
	if err := v.unknown(); err != nil {
		return &Result{}, err
	}
	// The old object is read by a definition without schemas, and the request is handled by
	// the real one.
	opts = append([]Option{func(r *request) { r.Version = v }}, append(opts[:len(opts):len(opts)], v.defaultOnce)...)
	out, err := s.definition.schemaless().Version(version).update(ctx, object, text, status, opts)
	return out.unstored(), err
}

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

// defaultOnce keeps a request from setting defaults again after its mutating function.
func (v *Version) defaultOnce(r *request) {
	mutate := r.mutate
	if mutate == nil {
		return
	}
	r.mutate = func(ctx context.Context, object map[string]any) error {
		err := mutate(ctx, object)
		r.Version = &Version{definition: v.definition.schemaless(), name: v.name, compiled: v.compiled}
		return err
	}
}

// unconverted is the definition, as one whose objects are converted elsewhere.
func (d *Definition) unconverted() *Definition {
	crd := *d.crd
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	return d.with(&crd, func(c *compiled) *compiled { return c })
}

// schemaless is the definition with nothing that changes an object which is read.
func (d *Definition) schemaless() *Definition {
	crd := *d.crd
	crd.Spec.PreserveUnknownFields = true
	return d.with(&crd, func(c *compiled) *compiled { return &compiled{spec: c.spec, hasStatus: c.hasStatus} })
}

func (d *Definition) with(crd *apiextensionsv1.CustomResourceDefinition, f func(*compiled) *compiled) *Definition {
	out := &Definition{crd: crd, versions: make(map[string]*Version, len(d.versions)), names: d.names, storage: d.storage}
	for name, v := range d.versions {
		out.versions[name] = &Version{definition: out, name: name, compiled: f(v.compiled)}
	}
	return out
}

// unstored undoes the end of a request: of a mutated object in the storage version, the
// text before it was read back is in Stored.
func (out *Result) unstored() *Result {
	if out.Stored != nil {
		out.Object, out.Stored = out.Stored, nil
	}
	return out
}

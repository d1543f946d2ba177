package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Schema is an OpenAPI v3 schema without a definition. It does what the API server does with
// the schema of a version, and nothing of what needs a group, a kind or a scope: it checks
// neither apiVersion and kind nor metadata. It does not change, and its methods are safe for
// concurrent use.
type Schema struct{ compiledSchema }

// ParseSchema reads one schema, in YAML or JSON, and compiles it. The schema is what a
// definition has as openAPIV3Schema: it is structural, and describes a whole object. The error
// has all faults that [CheckSchema] finds, but for warnings.
func ParseSchema(data []byte) (*Schema, error) {
	faults, text, err := checkSchema(data)
	errs := []error{err}
	for _, f := range faults {
		if !f.Warning {
			errs = append(errs, fmt.Errorf("schema: %s", f))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	crd, _, err := decodeDefinition(apiextensionsv1.SchemeGroupVersion.String(), text)
	if err != nil {
		return nil, err
	}
	d, err := New(crd)
	if err != nil {
		return nil, err
	}
	return &Schema{d.Version(d.StorageVersion()).compiledSchema}, nil
}

// CheckSchema is [Check] for one schema without a definition, as [ParseSchema] reads it. Paths
// begin at the root of the schema.
func CheckSchema(data []byte) ([]Fault, error) {
	faults, _, err := checkSchema(data)
	return faults, err
}

// checkSchema checks a schema in a definition that has no faults of its own, and returns the
// JSON of that.
func checkSchema(data []byte) (faults []Fault, definition []byte, err error) {
	n := 0
	err = eachObject(data, func(o *object) error {
		if n++; n > 1 {
			return errors.New("there is another schema before it: want one")
		}
		if !bytes.HasPrefix(bytes.TrimSpace(o.json), []byte("{")) {
			return errors.New("it is not an object")
		}
		definition = slices.Concat([]byte(beforeSchema), o.json, []byte(afterSchema))
		faults, err = o.checkAs(&checker{at: o.positions(), root: schemaRoot}, apiextensionsv1.SchemeGroupVersion.String(), definition)
		return err
	})
	if n == 0 && err == nil {
		err = errors.New("schema: there is no schema")
	}
	return faults, definition, err
}

const (
	beforeSchema = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"schemas.example.com"},` +
		`"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"schemas","kind":"Schema"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":`
	afterSchema = `}}]}}`
	schemaRoot  = "spec.versions[0].schema.openAPIV3Schema"
)

// Structural returns the structural schema, as [Version.Structural] does.
func (s *Schema) Structural() *structuralschema.Structural { return s.structural }

// Prune takes away, in place, the fields that the schema does not have, and returns their
// paths: see [Version.Prune].
func (s *Schema) Prune(object map[string]any) (pruned []string) { return s.prune(object) }

// Default sets, in place, the defaults of the schema, and removes nulls: see [Version.Default].
func (s *Schema) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
}

// Validate returns the faults of the schema, of embedded resources, of lists that are sets or
// maps, and of the CEL rules, in the order and form of [Version.Validate].
func (s *Schema) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.validator)
	return s.validateRest(ctx, object, nil, nil, errs)
}

// ValidateUpdate is [Schema.Validate] for an object that replaces an old one: faults of parts
// that have not changed are left out, as by [Version.ValidateUpdate].
func (s *Schema) ValidateUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	correlation := s.correlate(object, old)
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, s.validator, validation.WithRatcheting(correlation))
	return s.validateRest(ctx, object, old, correlation, errs)
}

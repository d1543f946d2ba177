// Package crd reads CustomResourceDefinitions from YAML or JSON, for packages that do without
// the Go types of apiextensions:
//
//	definitions, err := crd.Read(text)
//
// It checks what identifies a definition. Package schema checks the rest.
package crd

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Definition is a CustomResourceDefinition.
type Definition struct {
	Object map[string]any // all of it
	Fields
}

// Fields are the fields of a definition that this module reads.
type Fields struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Scope                 string      `json:"scope"`
		PreserveUnknownFields bool        `json:"preserveUnknownFields"`
		Versions              []Version   `json:"versions"`
		Conversion            *Conversion `json:"conversion"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

// Version is one of spec.versions.
type Version struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status map[string]any `json:"status"`
	} `json:"subresources"`
}

// Conversion is spec.conversion.
type Conversion struct {
	Strategy string `json:"strategy"`
	Webhook  struct {
		ConversionReviewVersions []string `json:"conversionReviewVersions"`
	} `json:"webhook"`
}

// String returns the kind and the name.
func (d *Definition) String() string { return "CustomResourceDefinition " + d.Metadata.Name }

// GroupKind returns the kind of the objects.
func (d *Definition) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// Used returns the versions that are served or stored, in their order.
func (d *Definition) Used() (versions []string) {
	for _, v := range d.Spec.Versions {
		if v.Served || v.Storage {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// Read reads all documents of a text. With an error, it returns the definitions that can be
// read. A text without definitions is an error.
func Read(text []byte) (found []*Definition, _ error) {
	var errs []error
	for line, document := range Documents(text) {
		d, err := readOne(document)
		if err != nil {
			errs = append(errs, fmt.Errorf("the document of line %d: %w", line, err))
		} else if d != nil {
			found = append(found, d)
		}
	}
	if len(found)+len(errs) == 0 {
		errs = append(errs, errors.New("no CustomResourceDefinition found"))
	}
	return found, errors.Join(errs...)
}

// Documents returns the documents of a text, with the line on which each begins. A YAML
// decoder reads no more than the first. A document has what follows its marker on the same line,
// but not the marker.
func Documents(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		begin, first, at, n := 0, 1, 0, 0
		for line := range bytes.Lines(text) {
			n++
			if IsMarker(line) {
				if !yield(first, text[begin:at]) {
					return
				}
				begin, first = at+len("---"), n // the rest of the line belongs to the document
			}
			at += len(line)
		}
		yield(first, text[begin:])
	}
}

// IsMarker reports whether a line ends a document, and begins another.
func IsMarker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0
}

// readOne returns nil for a document without content.
func readOne(document []byte) (*Definition, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return nil, nil
	}
	d := &Definition{}
	if err := json.Unmarshal(text, &d.Object); err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: d.Object}
	if u.GetAPIVersion() != "apiextensions.k8s.io/v1" || u.GetKind() != "CustomResourceDefinition" {
		return nil, fmt.Errorf("kind %q of apiVersion %q, expected a CustomResourceDefinition of apiextensions.k8s.io/v1", u.GetKind(), u.GetAPIVersion())
	}
	if err := json.Unmarshal(text, &d.Fields); err != nil {
		return nil, err
	}
	spec := d.Spec
	if spec.Group == "" || spec.Names.Kind == "" || spec.Names.Plural == "" || len(spec.Versions) == 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %q has no spec.group, spec.names.kind, spec.names.plural or spec.versions", u.GetName())
	}
	if want := spec.Names.Plural + "." + spec.Group; d.Metadata.Name != want {
		return nil, fmt.Errorf("CustomResourceDefinition %q: metadata.name must be %q", u.GetName(), want)
	}
	if spec.Scope != "Namespaced" && spec.Scope != "Cluster" {
		return nil, fmt.Errorf("CustomResourceDefinition %s: spec.scope %q must be Namespaced or Cluster", u.GetName(), spec.Scope)
	}
	return d, nil
}

package registration

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// maxDefinitions is how long the YAML of definitions may be. etcd takes 1.5 MiB an object.
const maxDefinitions = 64 << 20

// definition is a CustomResourceDefinition of the author, with all of its fields.
type definition struct {
	object map[string]any
	read   definitionFields
}

// definitionFields is what must be known of a definition. The Go type of apiextensions would
// bring in more than is needed.
type definitionFields struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Scope                 string `json:"scope"`
		PreserveUnknownFields bool   `json:"preserveUnknownFields"`
		Versions              []struct {
			Name         string `json:"name"`
			Served       bool   `json:"served"`
			Storage      bool   `json:"storage"`
			Subresources struct {
				Status map[string]any `json:"status"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// Definitions are the CustomResourceDefinitions, as YAML or JSON, of the kinds that the
// handlers serve: files such as controller-gen writes, with one or several documents. They
// tell the plural names, scopes and versions, and are in [Webhooks.Manifests] with all that
// they have, but their status.
func Definitions(texts ...[]byte) Option {
	return func(s *settings) {
		for i, text := range texts {
			found, err := readDefinitions(text)
			if err != nil {
				s.fault("Definitions, text %d: %w", i+1, err)
			}
			for _, d := range found {
				if slices.ContainsFunc(s.definitions, func(other *definition) bool { return other.name() == d.name() }) {
					s.fault("%s is given twice", d)
					continue
				}
				s.definitions = append(s.definitions, d)
			}
		}
	}
}

// readDefinitions reads all documents of a text. With an error, it returns those that can be
// read.
func readDefinitions(text []byte) (found []*definition, _ error) {
	if len(text) > maxDefinitions {
		return nil, fmt.Errorf("it is longer than %d bytes", maxDefinitions)
	}
	var faults []error
	for line, document := range documents(text) {
		d, err := readDefinition(document)
		if err != nil {
			faults = append(faults, fmt.Errorf("the document of line %d: %w", line, err))
		} else if d != nil {
			found = append(found, d)
		}
	}
	if len(found)+len(faults) == 0 {
		faults = append(faults, errors.New("it has no definition"))
	}
	return found, errors.Join(faults...)
}

// documents returns the documents of a text, with the line on which each begins. A YAML
// decoder reads no more than the first.
func documents(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		begin, first, at, n := 0, 1, 0, 0
		for line := range bytes.Lines(text) {
			n++
			if isMarker(line) {
				if !yield(first, text[begin:at]) {
					return
				}
				begin, first = at+len("---"), n // what is behind it belongs to the document
			}
			at += len(line)
		}
		yield(first, text[begin:])
	}
}

// isMarker says whether a line ends a document, and begins another.
func isMarker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0
}

// readDefinition returns nil for a document without content.
func readDefinition(document []byte) (*definition, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return nil, nil
	}
	d := &definition{}
	if err := json.Unmarshal(text, &d.object); err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: d.object}
	if u.GetAPIVersion() != "apiextensions.k8s.io/v1" || u.GetKind() != "CustomResourceDefinition" {
		return nil, fmt.Errorf("it is a %q of %q: want a CustomResourceDefinition of apiextensions.k8s.io/v1", u.GetKind(), u.GetAPIVersion())
	}
	if err := json.Unmarshal(text, &d.read); err != nil {
		return nil, err
	}
	spec := d.read.Spec
	if spec.Group == "" || spec.Names.Kind == "" || spec.Names.Plural == "" || len(spec.Versions) == 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %q has no spec.group, spec.names.kind, spec.names.plural or spec.versions", u.GetName())
	}
	if want := spec.Names.Plural + "." + spec.Group; d.name() != want {
		return nil, fmt.Errorf("CustomResourceDefinition %q: metadata.name must be %q", u.GetName(), want)
	}
	if spec.Scope != "Namespaced" && spec.Scope != "Cluster" {
		return nil, fmt.Errorf("CustomResourceDefinition %s: spec.scope %q must be Namespaced or Cluster", u.GetName(), spec.Scope)
	}
	unstructured.RemoveNestedField(d.object, "status")
	unstructured.RemoveNestedField(d.object, "metadata", "creationTimestamp")
	return d, nil
}

func (d *definition) name() string { return d.read.Metadata.Name }

func (d *definition) String() string { return "CustomResourceDefinition " + d.name() }

func (d *definition) kind() schema.GroupKind {
	return schema.GroupKind{Group: d.read.Spec.Group, Kind: d.read.Spec.Names.Kind}
}

// used returns the versions that are served or stored.
func (d *definition) used() (versions []string) {
	for _, v := range d.read.Spec.Versions {
		if v.Served || v.Storage {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// served returns the versions that are served, the oldest first.
func (d *definition) served() (versions []string) {
	for _, v := range d.read.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	slices.SortFunc(versions, kubeversion.CompareKubeAwareVersionStrings)
	return versions
}

// hasStatus says whether the definition has the subresource status in a version.
func (d *definition) hasStatus(version string) bool {
	for _, v := range d.read.Spec.Versions {
		if v.Name == version {
			return v.Subresources.Status != nil
		}
	}
	return false
}

// definition returns that of a kind, nil if there is none.
func (s *settings) definition(kind schema.GroupKind) *definition {
	for _, d := range s.definitions {
		if d.kind() == kind {
			return d
		}
	}
	return nil
}

// checkDefinitions finds definitions of one kind: rules could not tell them apart.
func (s *settings) checkDefinitions() {
	for _, d := range s.definitions {
		if first := s.definition(d.kind()); first != d {
			s.fault("%s and %s are both of kind %s", first, d, d.kind())
		}
	}
}

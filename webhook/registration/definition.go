package registration

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/crd"
)

// definition is a CustomResourceDefinition of the author.
type definition struct{ *crd.Definition }

// Definitions are the CustomResourceDefinitions, as YAML or JSON, of the kinds that the
// handlers serve: files such as controller-gen writes, with one or several documents. They
// tell the plural names, scopes and versions, and are in [Webhooks.Manifests] with all that
// they have, but their status.
func Definitions(texts ...[]byte) Option {
	return func(s *settings) {
		for i, text := range texts {
			found, err := crd.Read(text)
			if err != nil {
				s.fault("Definitions, text %d: %w", i+1, err)
			}
			for _, read := range found {
				d := &definition{read}
				unstructured.RemoveNestedField(d.Object, "status")
				unstructured.RemoveNestedField(d.Object, "metadata", "creationTimestamp")
				if s.named(d.Metadata.Name) != nil {
					s.fault("%s is given twice", d)
					continue
				}
				s.definitions = append(s.definitions, d)
			}
		}
	}
}

// served returns the versions that are served, the oldest first.
func (d *definition) served() (versions []string) {
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	slices.SortFunc(versions, kubeversion.CompareKubeAwareVersionStrings)
	return versions
}

// hasStatus says whether the definition has the subresource status in a version.
func (d *definition) hasStatus(version string) bool {
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			return v.Subresources.Status != nil
		}
	}
	return false
}

// definition returns that of a kind, nil if there is none.
func (s *settings) definition(kind schema.GroupKind) *definition {
	for _, d := range s.definitions {
		if d.GroupKind() == kind {
			return d
		}
	}
	return nil
}

// named returns the definition of a name, nil if there is none.
func (s *settings) named(name string) *definition {
	for _, d := range s.definitions {
		if d.Metadata.Name == name {
			return d
		}
	}
	return nil
}

// checkDefinitions finds definitions of one kind: rules could not tell them apart.
func (s *settings) checkDefinitions() {
	for _, d := range s.definitions {
		if first := s.definition(d.GroupKind()); first != d {
			s.fault("%s and %s are both of kind %s", first, d, d.GroupKind())
		}
	}
}

package registration

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/served"
)

// definition is a declared CustomResourceDefinition.
type definition struct {
	*crd.Definition
	convertedBy *conversionWebhook // or nil
}

// conversionWebhook is a conversion webhook.
type conversionWebhook struct {
	path    string
	handler http.Handler
}

func (c *conversionWebhook) String() string { return "Conversion " + c.path }

// CRDs adds the CustomResourceDefinitions (CRDs) of the kinds that the handlers serve, with
// the plural names, scopes and versions of their resources. Each argument is YAML or JSON with one
// or several documents, such as the files that controller-gen writes. [Webhooks.Manifests] contains
// the CRDs with all their fields, except for status and metadata.creationTimestamp.
func CRDs(texts ...[]byte) Option {
	return func(s *settings) {
		for i, text := range texts {
			found, err := crd.Read(text)
			if err != nil {
				s.errorf("CRDs, text %d: %w", i+1, err)
			}
			for _, read := range found {
				d := &definition{Definition: read}
				unstructured.RemoveNestedField(d.Object, "status")
				unstructured.RemoveNestedField(d.Object, "metadata", "creationTimestamp")
				for _, other := range s.definitions {
					if other.Metadata.Name == d.Metadata.Name || other.GroupKind() == d.GroupKind() {
						s.errorf("%s and %s are both of kind %s", other, d, d.GroupKind())
					}
				}
				s.definitions = append(s.definitions, d)
			}
		}
	}
}

// Conversion adds a handler of package conversion with the path on which it is served. Each CRD in
// [CRDs] whose kind the handler converts, and which has more than one version, gets this
// webhook in spec.conversion.
//
// [New] returns an error if
//
//   - a kind that the handler converts has no CRD,
//   - the handler does not convert all served and stored versions of a CRD,
//   - two handlers convert the same CRD, or
//   - a CRD has several served or stored versions, but neither a Conversion nor
//     [NoConversion].
func Conversion(path string, h http.Handler) Option {
	return func(s *settings) { s.conversions = append(s.conversions, &conversionWebhook{path, h}) }
}

// NoConversion declares that this operator does not convert a CRD with several versions, because
// another operator does, or because its strategy is None, with which the API server changes only
// apiVersion, so that all versions must have the same fields. The definition is the name of the
// CRD, such as pizzas.example.com.
//
// While the CRD in the cluster has a conversion that points to this operator, such as the
// conversion of an earlier release, [Webhooks.Ready] returns an error. Server-side apply of
// the manifests removes that conversion if the same field manager applied it.
func NoConversion(definition string) Option {
	return func(s *settings) { s.unconverted = append(s.unconverted, definition) }
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

// hasStatus reports whether a version of the CRD has the subresource status.
func (d *definition) hasStatus(version string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v crd.Version) bool {
		return v.Name == version && v.Subresources.Status != nil
	})
}

// definition returns the CRD of a kind, or nil.
func (s *settings) definition(kind schema.GroupKind) *definition {
	for _, d := range s.definitions {
		if d.GroupKind() == kind {
			return d
		}
	}
	return nil
}

// assignConversions finds the conversion webhook of each CRD.
func (s *settings) assignConversions() {
	for _, c := range s.conversions {
		s.assignConversion(c)
	}
	for _, d := range s.definitions {
		switch used := d.Used(); {
		case d.convertedBy == nil && len(used) > 1 && !slices.Contains(s.unconverted, d.Metadata.Name):
			s.errorf("%s: versions %s without a conversion: add Conversion, or NoConversion(%q)", d, strings.Join(used, ", "), d.Metadata.Name)
		case len(d.Spec.Versions) == 1:
			d.convertedBy = nil // there is nothing to convert
		case d.convertedBy != nil && d.Spec.PreserveUnknownFields:
			s.errorf("%s: spec.preserveUnknownFields is true, expected false with a conversion webhook", d)
		}
	}
}

func (s *settings) assignConversion(c *conversionWebhook) {
	known, _ := served.By(c.handler)
	if len(known.Conversions) == 0 {
		s.errorf("%s: handler without conversions, expected one of conversion.NewHandler", c)
	}
	for _, k := range known.Conversions {
		d := s.definition(k.GroupKind)
		if d == nil {
			s.errorf("%s: no CustomResourceDefinition of %s: add it to CRDs", c, k.GroupKind)
			continue
		}
		if d.convertedBy != nil {
			s.errorf("%s: converted twice, by %s and by %s", d, d.convertedBy, c)
		}
		d.convertedBy = c
		missing := slices.DeleteFunc(d.Used(), func(v string) bool { return slices.Contains(k.Versions, v) })
		if len(missing) > 0 {
			s.errorf("%s: %s does not convert version %s: add the conversions, or do not serve the version", d, c, strings.Join(missing, ", "))
		}
	}
}

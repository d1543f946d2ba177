package registration

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/handlerinfo"
)

// definition is a CustomResourceDefinition of the author.
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

// Definitions are the CustomResourceDefinitions, as YAML or JSON, of the kinds that the
// handlers serve: files such as controller-gen writes, with one or several documents. They
// tell the plural names, scopes and versions, and are in [Webhooks.Manifests] with all that
// they have, but their status.
func Definitions(texts ...[]byte) Option {
	return func(s *settings) {
		for i, text := range texts {
			found, err := crd.Read(text)
			if err != nil {
				s.errorf("Definitions, text %d: %w", i+1, err)
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

// Conversion adds a conversion webhook: the handler of package conversion, and the path on
// which it is served. Each of [Definitions] whose kind it converts, and which has more than
// one version, gets a conversion stanza. Where no Conversion converts a definition, it is an
// error that several of its versions are served or stored, unless [NoConversion] names it.
func Conversion(path string, h http.Handler) Option {
	return func(s *settings) { s.conversions = append(s.conversions, &conversionWebhook{path, h}) }
}

// NoConversion says that this operator does not convert a definition of several versions, such
// as pizzas.example.com: another one does, or the API server with strategy None, which changes
// nothing but apiVersion, so that its versions must have the same fields.
//
// While the cluster has a conversion that leads to this operator, such as that of an earlier
// release, [Webhooks.Check] fails. Server-side apply of the manifests takes it away, where it has
// applied it.
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

// hasStatus reports whether the definition has the subresource status in a version.
func (d *definition) hasStatus(version string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v crd.Version) bool {
		return v.Name == version && v.Subresources.Status != nil
	})
}

// definition returns that of a kind, or nil.
func (s *settings) definition(kind schema.GroupKind) *definition {
	for _, d := range s.definitions {
		if d.GroupKind() == kind {
			return d
		}
	}
	return nil
}

// assignConversions finds out what converts each definition.
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
	known, _ := handlerinfo.By(c.handler)
	if len(known.Conversions) == 0 {
		s.errorf("%s: handler without conversions, expected one of conversion.NewHandler", c)
	}
	for _, k := range known.Conversions {
		d := s.definition(k.GroupKind)
		if d == nil {
			s.errorf("%s: no definition of %s, which it converts: add it to Definitions", c, k.GroupKind)
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

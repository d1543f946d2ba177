package breaking

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// definition is a definition, and what it would copy whenever it is asked.
type definition struct {
	*schema.Definition
	crd      *apiextensionsv1.CustomResourceDefinition // must not be changed
	schemas  pipeline.Schemas
	versions map[string]*version
	storage  string // the name of the version in which objects are stored
}

// version is a version of a definition.
type version struct {
	*schema.Version
	definition *definition
	name       string
	spec       *apiextensionsv1.CustomResourceDefinitionVersion
	structural *structuralschema.Structural // nil if there is none
}

func newDefinition(of *schema.Definition) *definition {
	d := &definition{Definition: of, crd: of.CustomResourceDefinition(), versions: map[string]*version{}, storage: of.StorageVersion()}
	for i := range d.crd.Spec.Versions {
		spec := &d.crd.Spec.Versions[i]
		v := of.Version(spec.Name)
		d.versions[spec.Name] = &version{Version: v, definition: d, name: spec.Name, spec: spec, structural: v.Structural()}
	}
	d.schemas = pipeline.NewSchemas(d.crd, func(version string) *structuralschema.Structural { return d.versions[version].structural })
	return d
}

// bothServed reports whether clients see a version in both definitions.
func bothServed(was, is *version) bool { return was.Served() && is.Served() }

func (v *version) gvk() runtimeschema.GroupVersionKind {
	return v.definition.GroupKind().WithVersion(v.name)
}

// subresources returns the subresources of the version, which may be none.
func (v *version) subresources() apiextensionsv1.CustomResourceSubresources {
	if v.spec.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}
	return *v.spec.Subresources
}

// decode returns a copy of an object as one of this version, whatever its kind and version: it
// is pruned and gets its defaults.
func (v *version) decode(object map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	u.SetKind(v.gvk().Kind)
	if err := v.definition.schemas.Convert(u, v.name); err != nil {
		return nil, err
	}
	v.definition.schemas.SetDefaults(u)
	return u, nil
}

// viaStorage does to a decoded object what storing it and reading it back in this
// version does, as far as that takes no webhook. If it is stored in this version, nothing
// more is done to it.
func (v *version) viaStorage(u *unstructured.Unstructured) error {
	d := v.definition
	if v.name == d.storage || d.crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		return nil
	}
	if err := d.schemas.Convert(u, d.storage); err != nil {
		return err
	}
	if err := d.schemas.Restore(u); err != nil {
		return err
	}
	return d.schemas.Convert(u, v.name)
}

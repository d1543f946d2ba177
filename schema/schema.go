package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is a CustomResourceDefinition, compiled for use. It does not change, and
// its methods are safe for concurrent use.
type Definition struct {
	crd      *apiextensionsv1.CustomResourceDefinition // defaulted, and not shared
	versions map[string]*Version
	names    []string
	storage  string
}

// Version is one version of a definition. It does not change, and its methods are safe
// for concurrent use.
type Version struct {
	definition *Definition
	name       string
	*compiled  // nil if the definition has no such version
}

// GroupKind returns the group and kind of the objects.
func (d *Definition) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.crd.Spec.Group, Kind: d.crd.Spec.Names.Kind}
}

// CustomResourceDefinition returns a copy of the definition, of v1, with its defaults.
func (d *Definition) CustomResourceDefinition() *apiextensionsv1.CustomResourceDefinition {
	return d.crd.DeepCopy()
}

// Versions returns the names of all versions, served or not, the one of the highest
// priority first: v2, v1, v1beta1, v1alpha1 (apimachinery/pkg/version/helpers.go,
// CompareKubeAwareVersionStrings).
func (d *Definition) Versions() []string { return slices.Clone(d.names) }

// StorageVersion returns the name of the version in which objects are stored.
func (d *Definition) StorageVersion() string { return d.storage }

// Version returns the version of that name. It never returns nil. If the definition does not have
// that version, its methods return an error that names the existing versions; those that return
// no error panic with it. [Definition.Versions] lists them.
func (d *Definition) Version(name string) *Version {
	if v := d.versions[name]; v != nil {
		return v
	}
	return &Version{definition: d, name: name}
}

// Served reports whether the definition has this version, and the server serves it.
func (v *Version) Served() bool { return v.compiled != nil && v.spec.Served }

// Structural returns the structural schema, with its defaults pruned, as the server
// works with it. It is shared: it must not be changed. It is nil only where a definition
// with preserveUnknownFields has no schema, or one that cannot be read as structural.
func (v *Version) Structural() *structuralschema.Structural {
	v.mustExist()
	return v.structural
}

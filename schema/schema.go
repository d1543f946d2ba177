package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/crdkit/crdkit/internal/coerce"
)

// Definition is a compiled CustomResourceDefinition (CRD). It is immutable, and safe for concurrent
// use.
type Definition struct {
	crd      *apiextensionsv1.CustomResourceDefinition // defaulted, and not shared
	kind     coerce.Kind
	versions map[string]*Version
	names    []string
	storage  string
}

// Version is one version of a CRD. It is immutable, and safe for concurrent use.
type Version struct {
	definition *Definition
	name       string
	*compiled  // nil if the definition has no such version
}

// GroupKind returns the group and kind of the objects.
func (d *Definition) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.crd.Spec.Group, Kind: d.crd.Spec.Names.Kind}
}

// CustomResourceDefinition returns a copy of the CRD, in v1 and with defaults.
func (d *Definition) CustomResourceDefinition() *apiextensionsv1.CustomResourceDefinition {
	return d.crd.DeepCopy()
}

// Versions returns the names of all versions, served or not, by descending priority: v2, v1,
// v1beta1, v1alpha1 (apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings).
func (d *Definition) Versions() []string { return slices.Clone(d.names) }

// StorageVersion returns the name of the storage version.
func (d *Definition) StorageVersion() string { return d.storage }

// Version returns the version with the given name, and never nil. If the CRD has no such version,
// the methods of the result, except Served, return an error that names the existing versions, or
// panic with it if they return no error.
func (d *Definition) Version(name string) *Version {
	if v := d.versions[name]; v != nil {
		return v
	}
	return &Version{definition: d, name: name}
}

// Served reports whether the CRD has this version, and whether the server serves it.
func (v *Version) Served() bool { return v.compiled != nil && v.spec.Served }

// Structural returns the structural schema that the server uses, with pruned defaults. The
// result is shared and must not be modified. It is nil if the CRD has preserveUnknownFields, and
// the version has no schema or a schema that is not structural.
func (v *Version) Structural() *structuralschema.Structural {
	v.mustExist()
	return v.structural
}

// compiled is what the server makes of a version, once
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
// getOrCreateServingInfoFor).
type compiled struct {
	spec            *apiextensionsv1.CustomResourceDefinitionVersion
	structural      *structuralschema.Structural
	validator       validation.SchemaValidator
	cel             *cel.Validator             // nil if there are no rules
	statusValidator validation.SchemaValidator // nil without a status subresource or a schema of the status
	scale           *apiextensionsv1.CustomResourceSubresourceScale
	hasStatus       bool // there is a status subresource
}

// New compiles a copy of a CRD, and sets its defaults. If the server would not accept the CRD, New
// returns the server's error: an *apierrors.StatusError with reason Invalid and the paths of all
// problems, which begin with spec.validation if all versions have the same schema.
//
// New accepts a CRD with preserveUnknownFields, whose schemas need not be structural, if the server
// would accept an update that does not change it. The server no longer creates such CRDs, but still
// serves existing ones.
//
// The status of the CRD does not matter to New, but package breaking uses its storedVersions.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	if crd == nil {
		return nil, errors.New("schema: the CustomResourceDefinition is nil")
	}
	return newDefinition(crd, crd.Spec.PreserveUnknownFields)
}

// newDefinition is New, for a definition that servers have, but perhaps no longer create, if exists.
func newDefinition(crd *apiextensionsv1.CustomResourceDefinition, exists bool) (*Definition, error) {
	crd = crd.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	if err := checkDefinition(crd, exists); err != nil {
		return nil, err
	}
	d := &Definition{crd: crd, versions: make(map[string]*Version, len(crd.Spec.Versions))}
	d.kind = coerce.Kind{GroupKind: d.GroupKind(), Structural: map[string]*structuralschema.Structural{}, PreserveUnknownFields: crd.Spec.PreserveUnknownFields}
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		c, err := compile(crd, spec)
		if err != nil {
			return nil, fmt.Errorf("schema: CustomResourceDefinition %s: version %s: %w", crd.Name, spec.Name, err)
		}
		d.versions[spec.Name] = &Version{definition: d, name: spec.Name, compiled: c}
		d.kind.Structural[spec.Name] = c.structural
		d.names = append(d.names, spec.Name)
		if spec.Storage {
			d.storage = spec.Name
		}
	}
	slices.SortFunc(d.names, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return d, nil
}

func compile(crd *apiextensionsv1.CustomResourceDefinition, spec *apiextensionsv1.CustomResourceDefinitionVersion) (*compiled, error) {
	props, validator, statusValidator, err := coerce.Validators(spec)
	if err != nil {
		return nil, err
	}
	c := &compiled{spec: spec, validator: validator, statusValidator: statusValidator}
	if props != nil {
		c.structural, err = structuralschema.NewStructural(props)
		if !crd.Spec.PreserveUnknownFields {
			if err == nil { // the server always required it here, but an update does not tell
				err = structuralschema.ValidateStructural(field.NewPath("schema", "openAPIV3Schema"), c.structural).ToAggregate()
			}
			if err != nil {
				return nil, err
			}
			c.structural = c.structural.DeepCopy() // its defaults belong to the schema
			if err := defaulting.PruneDefaults(c.structural); err != nil {
				return nil, err
			}
		}
	}
	c.cel = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	if spec.Subresources != nil {
		c.scale, c.hasStatus = spec.Subresources.Scale, spec.Subresources.Status != nil
	}
	return c, nil
}

// unknown is the error of a version that the definition does not have.
func (v *Version) unknown() error {
	if v.compiled != nil {
		return nil
	}
	return fmt.Errorf("schema: %s has no version %s: want one of %s", v.definition.GroupKind(), v.name, strings.Join(v.definition.names, ", "))
}

func (v *Version) mustExist() {
	if err := v.unknown(); err != nil {
		panic(err)
	}
}

package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// compiled is what the server makes of a version, once
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
// getOrCreateServingInfoFor).
type compiled struct {
	compiledSchema
	spec            *apiextensionsv1.CustomResourceDefinitionVersion
	statusValidator validation.SchemaValidator // nil if there is no status subresource, or no schema of the status
	scale           *apiextensionsv1.CustomResourceSubresourceScale
	hasStatus       bool // there is a status subresource
}

// compiledSchema is the part that is made from the schema alone.
type compiledSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator // nil if there are no rules
}

// New compiles a definition that the program already has. It is defaulted first, and
// then has to be one which the server would accept; if not, the error is the server's
// own, an *apierrors.StatusError of reason Invalid with every problem and its path.
// (A schema that is the same in all versions is at spec.validation in such paths.)
//
// The server no longer accepts a definition with preserveUnknownFields, but goes on
// serving one that it has from earlier times. Such a one is accepted here if the server
// would accept an update which does not change it: its schemas need not be structural.
//
// The status of the definition does not matter here. It is kept for
// [Definition.CustomResourceDefinition]: the storedVersions matter to package breaking. New
// does not change the definition and does not keep it: it works with a copy.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	if crd == nil {
		return nil, errors.New("schema: the CustomResourceDefinition is nil")
	}
	crd = crd.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	if err := checkDefinition(crd); err != nil {
		return nil, err
	}
	d := &Definition{crd: crd, versions: make(map[string]*Version, len(crd.Spec.Versions))}
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		c, err := compile(crd, spec)
		if err != nil {
			return nil, fmt.Errorf("schema: CustomResourceDefinition %s: version %s: %w", crd.Name, spec.Name, err)
		}
		d.versions[spec.Name] = &Version{definition: d, name: spec.Name, compiled: c}
		d.names = append(d.names, spec.Name)
		if spec.Storage {
			d.storage = spec.Name
		}
	}
	slices.SortFunc(d.names, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return d, nil
}

func compile(crd *apiextensionsv1.CustomResourceDefinition, spec *apiextensionsv1.CustomResourceDefinitionVersion) (*compiled, error) {
	c := &compiled{spec: spec}
	var props *apiextensions.JSONSchemaProps
	var err error
	if spec.Schema != nil {
		internal := &apiextensions.CustomResourceValidation{}
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(spec.Schema.DeepCopy(), internal, nil); err != nil {
			return nil, err
		}
		props = internal.OpenAPIV3Schema
		c.structural, err = structuralschema.NewStructural(props)
		if !crd.Spec.PreserveUnknownFields {
			if err != nil {
				return nil, err
			}
			c.structural = c.structural.DeepCopy() // its defaults belong to the schema
			if err := defaulting.PruneDefaults(c.structural); err != nil {
				return nil, err
			}
		}
	}
	if c.validator, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, err
	}
	c.cel = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)

	if spec.Subresources == nil {
		return c, nil
	}
	c.scale = spec.Subresources.Scale
	if c.hasStatus = spec.Subresources.Status != nil; c.hasStatus && props != nil {
		if status, ok := props.Properties["status"]; ok {
			c.statusValidator, _, err = validation.NewSchemaValidator(&status)
		}
	}
	return c, err
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

package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Parse compiles the only CustomResourceDefinition (CRD) of a file as [ParseAll] does, and returns
// an error if the file has no CRD or several. If the server would not accept the CRD, the error is
// the server's own, in one line that can have 25 KB; [Check] returns a readable list.
func Parse(data []byte) (*Definition, error) {
	definitions, err := ParseAll(data)
	if err != nil {
		return nil, err
	}
	if len(definitions) != 1 {
		return nil, fmt.Errorf("schema: found %d CustomResourceDefinitions: want one", len(definitions))
	}
	return definitions[0], nil
}

// ParseAll compiles all CustomResourceDefinitions of a file with [New], in their order: documents
// of YAML or JSON, or items of a List. It skips documents without content, and returns an error for
// any other object, and for text after the end of a document. A file without CRDs gives an empty
// result.
//
// CRDs are read strictly, as kubectl sends them: an unknown or duplicate field is an error. A CRD
// of v1beta1 is defaulted and converted to v1, as by the servers that still supported v1beta1, and
// accepted if today's server would accept an update that does not change it.
//
// If a CRD has an error, the result is nil. The error joins all errors, and each names its document
// or its item of a List, and the line on which that begins.
func ParseAll(data []byte) ([]*Definition, error) {
	var definitions []*Definition
	err := eachObject(data, func(o *object) error {
		d, err := o.parse()
		definitions = append(definitions, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	return definitions, nil
}

// parse compiles a definition.
func (o *object) parse() (*Definition, error) {
	version, err := definitionVersion(o.json)
	if err != nil {
		return nil, errors.Join(append(o.duplicates, err)...)
	}
	crd, strict, err := decodeDefinition(version, o.json)
	if err := errors.Join(slices.Concat(o.duplicates, strict, []error{err})...); err != nil {
		return nil, err
	}
	return newDefinition(crd, crd.Spec.PreserveUnknownFields || version != apiextensionsv1.SchemeGroupVersion.String())
}

// definitionVersion returns the apiVersion of a definition. It is an error if the JSON is
// not that of a definition.
func definitionVersion(text []byte) (string, error) {
	if len(text) > maxRequest {
		return "", fmt.Errorf("the definition has %d bytes: the limit is %d", len(text), maxRequest)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return "", errors.New("the value is not an object")
	}
	var t metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &t); err != nil {
		return "", err
	}
	v1, v1beta1 := apiextensionsv1.SchemeGroupVersion.String(), apiextensionsv1beta1.SchemeGroupVersion.String()
	if t.Kind != "CustomResourceDefinition" || t.APIVersion != v1 && t.APIVersion != v1beta1 {
		return "", fmt.Errorf("the kind is %q of %q: want CustomResourceDefinition of %s or %s", t.Kind, t.APIVersion, v1, v1beta1)
	}
	return t.APIVersion, nil
}

// decodeDefinition decodes the JSON of a definition, and converts it to v1. The strict errors are
// about unknown and duplicate fields.
func decodeDefinition(version string, text []byte) (crd *apiextensionsv1.CustomResourceDefinition, strict []error, err error) {
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if version == apiextensionsv1.SchemeGroupVersion.String() {
		strict, err := kjson.UnmarshalStrict(text, crd)
		return crd, strict, err
	}
	old, internal := &apiextensionsv1beta1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if strict, err = kjson.UnmarshalStrict(text, old); err != nil {
		return nil, strict, err
	}
	apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(old)
	if err := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old, internal, nil); err != nil {
		return nil, strict, err
	}
	err = apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(internal, crd, nil)
	return crd, strict, err
}

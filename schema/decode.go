package schema

import (
	"encoding/hex"
	"fmt"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// decode reads the body of a request: JSON as application/json, anything else as
// application/yaml. It prunes and defaults, and warns or fails by the request's field validation,
// one of the options of a kind such as CreateOptions (apiserver/pkg/endpoints/handlers/create.go
// and customresource_handler.go, DecoderToVersion).
func (r *request) decode(body []byte, options string) (*unstructured.Unstructured, error) {
	if errs := metav1validation.ValidateFieldValidation(field.NewPath("fieldValidation"), r.fieldValidation); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: options}, "", errs)
	}
	if len(body) > maxRequest {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxRequest))
	}
	strict := r.fieldValidation != metav1.FieldValidationIgnore
	u, gvk, err := r.decodeStrictly(body, strict)
	if err != nil {
		strictErr, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict || u == nil || r.fieldValidation == metav1.FieldValidationStrict {
			return nil, r.decodeError(err, u, gvk, body)
		}
		for _, err := range strictErr.Errors() {
			for _, w := range yamlWarnings(err.Error()) {
				r.AddWarning("", w)
			}
		}
	}
	r.definition.setDefaults(u)
	if got, want := gvk.GroupVersion(), r.gvk().GroupVersion(); got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
	}
	return u, nil
}

// decodeStrictly is Decode of schemaCoercingDecoder, in customresource_handler.go.
func (r *request) decodeStrictly(body []byte, strict bool) (*unstructured.Unstructured, *schema.GroupVersionKind, error) {
	typer := crdserverscheme.NewUnstructuredObjectTyper()
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, typer, json.SerializerOptions{
		Yaml:   !utilyaml.IsJSONBuffer(body),
		Strict: strict,
	})
	defaults := r.gvk()
	obj, gvk, err := serializer.Decode(body, &defaults, &unstructured.Unstructured{})
	var problems []error
	if err != nil {
		strictErr, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		problems = strictErr.Errors()
	}
	u := obj.(*unstructured.Unstructured)
	unknown, err := r.definition.coerce(u, false, strict)
	if err != nil {
		return nil, gvk, err
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf(`unknown field "%s"`, path))
	}
	if strict && len(problems) > 0 {
		return u, gvk, runtime.NewStrictDecodingError(problems)
	}
	return u, gvk, nil
}

// decodeError is transformDecodeError of apiserver/pkg/endpoints/handlers/rest.go. There is
// an object if its problems are only those of strict decoding.
func (r *request) decodeError(err error, u *unstructured.Unstructured, gvk *schema.GroupVersionKind, body []byte) error {
	kind := r.gvk().Kind
	if u != nil {
		kinds, _, err := crdserverscheme.NewUnstructuredObjectTyper().ObjectKinds(u)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		kind = kinds[0].Kind
	}
	if gvk != nil && gvk.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, summary(body)))
}

// summary is summarizeData of handlers/rest.go.
func summary(body []byte) string {
	const most = 30
	cut, dots := body, ""
	if len(body) > most {
		cut, dots = body[:most], " ..."
	}
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		return string(cut) + dots
	default:
		return hex.EncodeToString(cut) + dots
	}
}

// yamlWarnings is parseYAMLWarnings of handlers/rest.go.
func yamlWarnings(text string) []string {
	for _, prefix := range []string{"yaml: unmarshal errors:\n", "error converting YAML to JSON: yaml: unmarshal errors:\n"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			lines := strings.Split(rest, "\n")
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			return lines
		}
	}
	return []string{text}
}

// coerce does to an object what decoding does to one of a Go type, by the schema of the object's
// own version: it validates and prunes metadata, prunes unknown fields, and removes each null that
// is not nullable and has no default. Invalid metadata of a stored object is dropped. track returns
// the paths of unknown fields (customresource_handler.go, unstructuredSchemaCoercer).
func (d *Definition) coerce(u *unstructured.Unstructured, stored, track bool) (unknown []string, err error) {
	kind, _, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, _, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	metadata, foundMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     stored,
		ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if gv.WithKind(kind).GroupKind() == d.GroupKind() {
		structural := d.structural(gv.Version)
		if !d.crd.Spec.PreserveUnknownFields {
			unknown = append(unknown, pruning.PruneWithOptions(u.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
		}
		err, more := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{
			DropInvalidFields:       stored,
			ReturnUnknownFieldPaths: track,
		})
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
		if stored && metadata != nil && metadata.Generation == 0 {
			metadata.Generation = 1
		}
	}
	if foundMetadata {
		if err := objectmeta.SetObjectMeta(u.Object, metadata); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// structural returns the schema of a version, or nil.
func (d *Definition) structural(version string) *structuralschema.Structural {
	if v := d.versions[version]; v != nil {
		return v.structural
	}
	return nil
}

// setDefaults sets the defaults of the object's own version
// (customresource_handler.go, unstructuredDefaulter).
func (d *Definition) setDefaults(u *unstructured.Unstructured) {
	if gvk := u.GroupVersionKind(); gvk.GroupKind() == d.GroupKind() {
		defaulting.Default(u.Object, d.structural(gvk.Version))
	}
}

package schema

import (
	"encoding/hex"
	"fmt"
	"strings"

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

	"github.com/crdkit/crdkit/internal/coerce"
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
	r.definition.kind.Default(u)
	if got, want := gvk.GroupVersion(), r.gvk().GroupVersion(); got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
	}
	return u, nil
}

// decodeStrictly decodes the body of a request, whose unknown fields are errors if strict.
func (r *request) decodeStrictly(body []byte, strict bool) (*unstructured.Unstructured, *schema.GroupVersionKind, error) {
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, crdserverscheme.NewUnstructuredObjectTyper(), json.SerializerOptions{
		Yaml:   !utilyaml.IsJSONBuffer(body),
		Strict: strict,
	})
	of := func(*unstructured.Unstructured) coerce.Kind { return r.definition.kind }
	defaults := r.gvk()
	obj, gvk, err := coerce.Decoder{Decoder: serializer, Of: of, Strict: strict}.Decode(body, &defaults, &unstructured.Unstructured{})
	u, _ := obj.(*unstructured.Unstructured) // nil after an error that is not about strictness
	return u, gvk, err
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

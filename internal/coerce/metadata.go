package coerce

import (
	"errors"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RestoreMetadata gives a converted object the metadata of the original, apart from labels and annotations. It returns an error
// if the labels or annotations of the converted object are invalid, and not those of the original
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, restoreObjectMeta).
func RestoreMetadata(original, converted *unstructured.Unstructured) error {
	answered, found := converted.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	theirs, ok := answered.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", answered)
	}
	metadata := map[string]any{}
	if was, ok := original.Object["metadata"]; ok {
		if metadata, ok = runtime.DeepCopyJSONValue(was).(map[string]any); !ok {
			return fmt.Errorf("invalid metadata of type %T in input object", was)
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		if theirs[name] == nil {
			delete(metadata, name)
			continue
		}
		values, ok := theirs[name].(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, theirs[name])
		}
		before, ok := metadata[name].(map[string]any)
		if !ok && metadata[name] != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in original object", name, metadata[name])
		}
		if err := validateStrings(name, values, before); err != nil {
			return err
		}
		metadata[name] = values
	}
	converted.Object["metadata"] = metadata
	return nil
}

// validateStrings validates labels or annotations, unless they are those of before.
func validateStrings(name string, values, before map[string]any) error {
	changed := len(values) != len(before)
	texts := make(map[string]string, len(values))
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		texts[key] = text
		changed = changed || before[key] != value
	}
	if !changed {
		return nil
	}
	if name == "labels" {
		return metav1validation.ValidateLabels(texts, field.NewPath("metadata", name)).ToAggregate()
	}
	return apivalidation.ValidateAnnotations(texts, field.NewPath("metadata", "annotation")).ToAggregate()
}

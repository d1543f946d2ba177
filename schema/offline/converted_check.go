package offline

import (
	"errors"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkConverted is validateConvertedObject.
func checkConverted(in, out *unstructured.Unstructured) error {
	for _, c := range []struct{ what, before, after string }{
		{"kind", in.GetKind(), out.GetKind()},
		{"name", in.GetName(), out.GetName()},
		{"namespace", in.GetNamespace(), out.GetNamespace()},
		{"UID", string(in.GetUID()), string(out.GetUID())},
	} {
		if c.before != c.after {
			return fmt.Errorf("must have the same %s: %v != %v", c.what, c.before, c.after)
		}
	}
	return nil
}

// restoreMetadata keeps the metadata of the original but for labels and annotations: it is
// restoreObjectMeta.
func restoreMetadata(in, out *unstructured.Unstructured) error {
	answer, found := out.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	answered, ok := answer.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", answer)
	}
	metadata := map[string]any{}
	if original, found := in.Object["metadata"]; found {
		if metadata, ok = runtime.DeepCopyJSONValue(original).(map[string]any); !ok {
			return fmt.Errorf("invalid metadata of type %T in input object", original)
		}
	}
	out.Object["metadata"] = metadata
	for _, name := range []string{"labels", "annotations"} {
		value := answered[name]
		if value == nil {
			delete(metadata, name)
			continue
		}
		texts, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
		}
		original, ok := metadata[name].(map[string]any)
		if !ok && metadata[name] != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in original object", name, metadata[name])
		}
		changed := len(original) != len(texts)
		all := make(map[string]string, len(texts))
		for k, v := range texts {
			text, ok := v.(string)
			if !ok {
				return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
			}
			all[k] = text
			changed = changed || original[k] != v
		}
		if changed {
			errs := metav1validation.ValidateLabels(all, field.NewPath("metadata", "labels"))
			if name == "annotations" {
				errs = apivalidation.ValidateAnnotations(all, field.NewPath("metadata", "annotation"))
			}
			if len(errs) > 0 {
				return errs.ToAggregate()
			}
		}
		metadata[name] = texts
	}
	return nil
}

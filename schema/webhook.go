package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Convert sets a function that stands in for the conversion webhook of a CRD with the strategy
// Webhook. The function gets an object as JSON and returns it in another version, like the Convert
// method of conversion.Registry. As on the server, only labels and annotations of the metadata may
// change. Errors have the text of the server's converter, around the error of the function
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go); for a read, newer
// servers also prefix "StorageError: corrupt object" and the key.
func Convert(convert func(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)) Option {
	return func(r *request) { r.webhook = convert }
}

// callWebhook converts an object in place.
func (r *request) callWebhook(ctx context.Context, u *unstructured.Unstructured, to schema.GroupVersion) error {
	from := u.GroupVersionKind()
	text, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	answer, err := r.webhook(ctx, text, to)
	if err != nil {
		return fmt.Errorf("conversion webhook for %v failed: %w", from, err)
	}
	converted := &unstructured.Unstructured{}
	if err := converted.UnmarshalJSON(answer); err != nil {
		return err
	}
	if got := converted.GroupVersionKind().GroupVersion(); got != to {
		return fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from, to, got)
	}
	if err := validateConverted(u, converted); err != nil {
		return fmt.Errorf("conversion webhook for %v returned invalid object: %w", from, err)
	}
	if err := restoreMetadata(u, converted); err != nil {
		return fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", from, err)
	}
	u.Object = converted.Object
	return nil
}

// validateConverted is validateConvertedObject of webhook_converter.go.
func validateConverted(in, out *unstructured.Unstructured) error {
	for _, f := range []struct{ name, want, got string }{
		{"kind", in.GetKind(), out.GetKind()},
		{"name", in.GetName(), out.GetName()},
		{"namespace", in.GetNamespace(), out.GetNamespace()},
		{"UID", string(in.GetUID()), string(out.GetUID())},
	} {
		if f.want != f.got {
			return fmt.Errorf("must have the same %s: %v != %v", f.name, f.want, f.got)
		}
	}
	return nil
}

// restoreMetadata gives the converted object the metadata of the original, apart from labels and
// annotations. It is restoreObjectMeta of webhook_converter.go.
func restoreMetadata(original, converted *unstructured.Unstructured) error {
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

package schema

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/coerce"
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
	if err := coerce.RestoreMetadata(u, converted); err != nil {
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

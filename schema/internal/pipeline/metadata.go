package pipeline

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// RemoveMetadata removes fields of an object's metadata.
func RemoveMetadata(u *unstructured.Unstructured, names ...string) {
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		for _, name := range names {
			delete(metadata, name)
		}
	}
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AuditAnnotation adds an annotation to the audit event of the request which the function
// that was given the context is called for. The API server puts the name of the webhook
// and a slash before the key (AuditAnnotations in k8s.io/api/admission/v1), which must
// thus be the name part of a qualified name: letters, digits, "-", "_" and ".", at most
// 63; it would drop another one. The last value of a key counts. The error says what is
// wrong with the key, or that the context is not one of a function, or that of one that
// has returned.
func AuditAnnotation(ctx context.Context, key, value string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 || strings.Contains(key, "/") {
		return fmt.Errorf("admission: %q is no key of an audit annotation: %s", key, strings.Join(append(wrong, "it has no prefix"), "; "))
	}
	s := lock(ctx)
	if s == nil {
		return errNoCall
	}
	defer s.mu.Unlock()
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	s.annotations[key] = value
	return nil
}

var errNoCall = errors.New("admission: the context is not that of an admission function which is running")

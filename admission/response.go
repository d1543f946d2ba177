package admission

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Warn adds a warning to the answer of the request which the function that was given the
// context is called for; kubectl prints it, whether the request is denied or not. One that
// is empty, or was given before, is not added. Outside such a function, and when it has
// returned, Warn does nothing.
//
// It should be short, without a prefix: if all warnings together have more than 4096
// characters, the API server cuts each to 256 and drops those that do not fit. It drops
// those with control characters, which become spaces here
// (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
func Warn(ctx context.Context, format string, args ...any) {
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r // invalid UTF-8 has become U+FFFD
	}, fmt.Sprintf(format, args...)))
	s := lock(ctx)
	if s == nil {
		return
	}
	defer s.mu.Unlock()
	if c := s.call; text != "" && !slices.Contains(c.warnings, text) {
		c.warnings = append(c.warnings, text)
	}
}

// AuditAnnotation adds an annotation to the audit event of the request which the function
// that was given the context is called for. The API server puts the name of the webhook
// and a slash before the key (AuditAnnotations in k8s.io/api/admission/v1), which must
// thus be the name part of a qualified name: letters, digits, "-", "_" and ".", at most
// 63; it would drop another one. The last value of a key counts. It is an error if the key
// is not valid, or the context is not that of a function which is running.
func AuditAnnotation(ctx context.Context, key, value string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 || strings.Contains(key, "/") {
		return fmt.Errorf("admission: %q is not a key of an audit annotation: %s",
			key, strings.Join(append(wrong, "it has no prefix"), "; "))
	}
	s := lock(ctx)
	if s == nil {
		return errors.New("admission: the context is not that of an admission function which is running")
	}
	defer s.mu.Unlock()
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	s.annotations[key] = value
	return nil
}

// respond appends the text of an AdmissionResponse: with a status the request is denied.
// The responses of v1 and of v1beta1 have the same members.
func (c *call) respond(b []byte, uid types.UID, status *metav1.Status, patch []byte) ([]byte, error) {
	b = rawjson.AppendQuote(append(b, `{"uid":`...), string(uid))
	if status == nil {
		b = append(b, `,"allowed":true`...)
	} else {
		b = append(b, `,"allowed":false`...)
	}
	if patch != nil {
		b = append(b, `,"patch":"`...)
		b = base64.StdEncoding.AppendEncode(b, patch)
		b = append(b, `","patchType":"JSONPatch"`...)
	}
	var err error
	add := func(name string, value any) {
		text, e := json.Marshal(value)
		if e != nil {
			err = e
		}
		b = append(append(b, name...), text...)
	}
	if status != nil {
		add(`,"status":`, status)
	}
	if len(c.annotations) > 0 {
		add(`,"auditAnnotations":`, c.annotations)
	}
	if len(c.warnings) > 0 {
		add(`,"warnings":`, c.warnings)
	}
	return append(b, '}'), err
}

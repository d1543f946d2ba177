package admission

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Warn adds a warning to the response to the request being handled; ctx must be the context passed
// to your function, or derived from it. kubectl prints warnings even if the request is denied. Warn
// ignores empty and duplicate warnings, and does nothing if ctx is another context, or if your
// function has returned.
//
// A warning should be short and have no prefix. If all warnings together exceed 4096 characters,
// the API server truncates each to 256 characters, and drops warnings that still do not fit. Warn
// replaces control characters by spaces, because the API server drops warnings that contain them
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

// AuditAnnotation adds an annotation to the audit event of the request being handled; ctx must
// be the context passed to your function, or derived from it. The API server prefixes the key
// with the name of the webhook and a slash (AuditAnnotations in k8s.io/api/admission/v1). If a
// key is given again, the last value is used.
//
// The key must be the name part of a qualified name: at most 63 letters, digits, "-", "_" and ".".
// AuditAnnotation returns an error for another key, which the API server would drop, and if ctx is
// another context, or your function has returned.
func AuditAnnotation(ctx context.Context, key, value string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 || strings.Contains(key, "/") {
		return fmt.Errorf("admission: audit annotation %q: %s",
			key, strings.Join(append(wrong, "expected a name without a prefix"), "; "))
	}
	s := lock(ctx)
	if s == nil {
		return fmt.Errorf("admission: audit annotation %q: expected the context of a running admission function", key)
	}
	defer s.mu.Unlock()
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	s.annotations[key] = value
	return nil
}

// respond appends the JSON of an AdmissionResponse. With a status, the request is denied. The
// responses of v1 and v1beta1 have the same members.
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

package admission

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	if messages := validation.IsQualifiedName(key); len(messages) > 0 || strings.Contains(key, "/") {
		return fmt.Errorf("admission: audit annotation %q: %s",
			key, strings.Join(append(messages, "expected a name without a prefix"), "; "))
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

// response is what the functions have said so far.
type response struct {
	patches     [][]byte // each applies to the result of the previous patch
	warnings    []string
	annotations map[string]string
}

// append appends the JSON of an AdmissionResponse. With a status, the request is denied. The
// responses of v1 and v1beta1 have the same members.
func (r *response) append(b []byte, uid types.UID, status *metav1.Status) ([]byte, error) {
	b = rawjson.AppendQuote(append(b, `{"uid":`...), string(uid))
	b = strconv.AppendBool(append(b, `,"allowed":`...), status == nil)
	if len(r.patches) > 0 {
		b = append(b, `,"patch":"`...)
		b = base64.StdEncoding.AppendEncode(b, joined(r.patches))
		b = append(b, `","patchType":"JSONPatch"`...)
	}
	if status == nil && len(r.annotations)+len(r.warnings) == 0 {
		return append(b, '}'), nil
	}
	others, err := json.Marshal(struct {
		Status           *metav1.Status    `json:"status,omitempty"`
		AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
		Warnings         []string          `json:"warnings,omitempty"`
	}{status, r.annotations, r.warnings})
	if err != nil {
		return nil, err
	}
	return append(append(b, ','), others[1:]...), nil
}

// joined joins patches, which are lists without spaces, into one.
func joined(patches [][]byte) []byte {
	list := []byte{'['}
	for i, patch := range patches {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, patch[1:len(patch)-1]...)
	}
	return append(list, ']')
}

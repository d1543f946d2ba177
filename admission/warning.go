package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The API server sends 4096 runes of warnings, of all webhooks together; if there are
// more, it cuts each to 256 and drops those that do not fit
// (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// Warn adds a warning to the answer of the request which the function that was given the
// context is called for; kubectl prints it, whether the request is denied or not. It
// should be short, without a prefix. One that is empty, or was given before, is not added.
//
// The API server drops a warning with control characters: they become spaces. Where the
// warnings are too long for it, together, each is cut to 256 characters and ends in "…",
// and the last one says how many others did not fit. Outside such a function, and when
// it has returned, Warn does nothing.
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

// fit returns the warnings as they fit into what the API server sends.
func fit(warnings []string) []string {
	total := 0
	for _, w := range warnings {
		total += utf8.RuneCountInString(w)
	}
	if total <= maxWarnings {
		return warnings
	}
	var fitting []string
	left := maxWarnings - maxWarning // the rest is for the last one
	for i, w := range warnings {
		if runes := []rune(w); len(runes) > maxWarning {
			w = string(runes[:maxWarning-1]) + "…"
		}
		if left -= utf8.RuneCountInString(w); left < 0 {
			return append(fitting, fmt.Sprintf("and %d more warnings", len(warnings)-i))
		}
		fitting = append(fitting, w)
	}
	return fitting
}

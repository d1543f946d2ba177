// Package logcheck has a logger that keeps its lines, and one that finds strings of clients which are not escaped or not
// bounded.
package logcheck

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2/textlogger"
)

// Bad returns a name that a client may send: long, and with characters that forge a line and color it.
func Bad() string { return "bad\nI0101 forged\r\x1b[31m" + strings.Repeat("x", 200_000) }

// New returns a logger, and a function that returns the number of its entries. The test fails if an entry
// has a control character or more than 16 KiB, as values of logr or in klog's text. Only stacks have lines.
func New(t testing.TB) (logger logr.Logger, entries func() int64) {
	s := &sink{t: t}
	return logr.New(s), s.entries.Load
}

type sink struct {
	t       testing.TB
	entries atomic.Int64
}

func (s *sink) Init(logr.RuntimeInfo)                 {}
func (s *sink) Enabled(int) bool                      { return true }
func (s *sink) WithName(string) logr.LogSink          { return s }
func (s *sink) Info(_ int, msg string, values ...any) { s.check(msg, values) }
func (s *sink) WithValues(values ...any) logr.LogSink {
	s.check("WithValues", values)
	s.entries.Add(-1)
	return s
}
func (s *sink) Error(err error, msg string, values ...any) {
	s.check(msg, append([]any{"error", err}, values...))
}

func (s *sink) check(msg string, values []any) {
	s.entries.Add(1)
	var quiet []any
	for i := 0; i+1 < len(values); i += 2 {
		text := fmt.Sprint(values[i+1])
		if len(text) > 16<<10 {
			s.t.Errorf("%s: %v has %d bytes: %.100q", msg, values[i], len(text), text)
		}
		if values[i] == "stack" {
			continue
		}
		quiet = append(quiet, values[i], values[i+1])
		if strings.ContainsFunc(text, unicode.IsControl) {
			s.t.Errorf("%s: %v has control characters: %.100q", msg, values[i], text)
		}
	}
	var b bytes.Buffer
	textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&b))).Info(msg, quiet...)
	if text := strings.TrimSuffix(b.String(), "\n"); strings.ContainsFunc(text, unicode.IsControl) || len(text) > 16<<10 {
		s.t.Errorf("klog writes %d bytes: %.300q", len(text), text)
	}
}

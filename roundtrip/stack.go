package roundtrip

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// stackOf returns where a conversion function panics while f runs: the registry logs the
// stack. It is empty if none does.
func stackOf(ctx context.Context, f func(ctx context.Context)) string {
	var sink stackSink
	f(klog.NewContext(ctx, logr.New(&sink)))
	return trim(sink.stack)
}

// stackSink is a log that keeps the first stack alone.
type stackSink struct{ stack string }

var _ logr.LogSink = (*stackSink)(nil)

func (s *stackSink) Init(logr.RuntimeInfo)          {}
func (s *stackSink) Enabled(int) bool               { return true }
func (s *stackSink) Info(int, string, ...any)       {}
func (s *stackSink) WithValues(...any) logr.LogSink { return s }
func (s *stackSink) WithName(string) logr.LogSink   { return s }
func (s *stackSink) Error(_ error, _ string, values ...any) {
	for i := 0; i+1 < len(values); i += 2 {
		if text, ok := values[i+1].(string); ok && values[i] == "stack" && s.stack == "" {
			s.stack = text
		}
	}
}

// trim leaves of a stack what is between the panic and the registry, or a law about Go
// values: the author's own functions. Each takes two lines.
func trim(stack string) string {
	lines := strings.SplitAfter(stack, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			lines = lines[min(i+2, len(lines)):]
			break
		}
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "github.com/crdkit/crdkit/conversion.") || strings.HasPrefix(line, "github.com/crdkit/crdkit/roundtrip.(*subject).") {
			lines = lines[:i]
			break
		}
	}
	return strings.Join(lines, "")
}

package webhook

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// errorLog takes what net/http has to say. A panic of a handler is an error. The rest
// is what clients did wrong: of interest only to who looks for it, at verbosity 2. Of
// both there may be much, so that no more than linesAMinute are let through.
type errorLog struct {
	logger logr.Logger

	mu      sync.Mutex
	minute  time.Time // when it began
	lines   int       // in it
	dropped int
}

const linesAMinute = 100

func (l *errorLog) Write(p []byte) (int, error) {
	panicked := bytes.Contains(p, []byte("panic serving"))
	verbose := l.logger.V(2)
	if !panicked && !verbose.Enabled() {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.minute) >= time.Minute {
		if l.dropped > 0 {
			verbose.Info("The webhook server had more to say than is logged", "lines", l.dropped)
		}
		l.minute, l.lines, l.dropped = time.Now(), 0, 0
	}
	if l.lines++; l.lines > linesAMinute {
		l.dropped++
		return len(p), nil
	}
	message := string(bytes.TrimSpace(p))
	if panicked {
		l.logger.Error(errors.New(message), "Webhook server")
	} else {
		verbose.Info("Webhook server", "message", message)
	}
	return len(p), nil
}

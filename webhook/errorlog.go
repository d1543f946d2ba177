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
// both there may be much, so that no more than linesAMinute of each are let through;
// and neither takes the place of the other, since clients choose some of the text.
type errorLog struct {
	logger logr.Logger

	mu           sync.Mutex
	minute       time.Time // when it began
	panics, rest budget
}

// budget is what has been said in a minute.
type budget struct{ lines, dropped int }

const linesAMinute = 100

// spend says whether one more line may be logged.
func (b *budget) spend() bool {
	if b.lines >= linesAMinute {
		b.dropped++
		return false
	}
	b.lines++
	return true
}

// Write takes one message, as log.Logger writes it. Those of panics begin as
// net/http/server.go and h2_bundle.go let them; whatever a client chooses comes later
// in a message.
func (l *errorLog) Write(p []byte) (int, error) {
	panicked := bytes.HasPrefix(p, []byte("http: panic serving ")) || bytes.HasPrefix(p, []byte("http2: panic serving "))
	verbose := l.logger.V(2)
	if !panicked && !verbose.Enabled() {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.minute) >= time.Minute {
		if n := l.panics.dropped; n > 0 {
			l.logger.Error(errors.New("webhook: more handlers have panicked than is logged"), "Webhook server", "panics", n)
		}
		if n := l.rest.dropped; n > 0 {
			verbose.Info("The webhook server had more to say than is logged", "lines", n)
		}
		l.minute, l.panics, l.rest = time.Now(), budget{}, budget{}
	}
	message := string(bytes.TrimSpace(p))
	switch {
	case panicked && l.panics.spend():
		l.logger.Error(errors.New(message), "Webhook server")
	case !panicked && l.rest.spend():
		verbose.Info("Webhook server", "message", message)
	}
	return len(p), nil
}

package crdmigrate

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"

	"github.com/crdkit/crdkit/conversion/migrate"
)

const (
	// linePace is how often a terminal's line is replaced.
	linePace = time.Second / 10
	// logPace is how often a log gets a line.
	logPace = 10 * time.Second
	// patience is how long the API server may take before the user is told, and waitPace is how often
	// that is told.
	patience, waitPace = time.Second, 5 * time.Second
)

// replaceLine goes to the beginning of a terminal's line, and clears it (ECMA-48, EL).
const replaceLine = "\r\x1b[K"

// progress shows how far a migration is: on a terminal in one line, and else as lines.
type progress struct {
	out      io.Writer
	name     string
	first    string // what is done until there are numbers
	terminal bool
	began    time.Time

	mu    sync.Mutex
	timer *time.Timer // that tells so; nil once there are numbers
	next  time.Time   // of a line; zero before anything is done
}

// newProgress shows the progress from now on, until end is called.
func newProgress(out io.Writer, name, first string) *progress {
	file, ok := out.(*os.File)
	p := &progress{out: out, name: name, first: first, terminal: ok && term.IsTerminal(int(file.Fd())), began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(patience, p.wait)
	return p
}

// wait tells that there are no numbers yet.
func (p *progress) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return
	}
	begin, end := "", "\n"
	if p.terminal {
		begin, end = replaceLine, ""
	}
	fmt.Fprintf(p.out, "%s%s: %s, for %s%s", begin, p.name, p.first, time.Since(p.began).Round(time.Second), end)
	p.timer.Reset(waitPace)
}

// logger returns a logger that prints a line for each message, such as why requests are sent again.
func (p *progress) logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(p, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// Write prints a line of a log.
func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		fmt.Fprint(p.out, replaceLine)
	}
	return p.out.Write(line)
}

func (p *progress) show(m migrate.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace, begin, end := logPace, "", "\n"
	if p.terminal {
		pace, begin, end = linePace, replaceLine, ""
	}
	if m.Waiting > 0 {
		fmt.Fprintf(p.out, "%s%s: waiting %s, until no API server stores in an old version any more (--propagation-delay)\n", begin, p.name, m.Waiting)
		p.stop()
		p.timer = time.AfterFunc(m.Waiting+patience, p.wait)
		return
	}
	p.stop()
	if time.Now().Before(p.next) {
		return
	}
	if !p.next.IsZero() {
		fmt.Fprintf(p.out, "%s%s: %d of %d objects, %d rewritten, %d failed%s", begin, p.name, m.Done(), m.Total, m.Rewritten, m.Failed, end)
	}
	p.next = time.Now().Add(pace)
}

// end makes room for what comes after.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	if p.terminal {
		fmt.Fprint(p.out, replaceLine)
	}
}

func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

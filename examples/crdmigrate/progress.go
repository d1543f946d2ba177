package crdmigrate

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/crdkit/crdkit/conversion/migrate"
)

const (
	// linePace is how often a terminal's line is replaced.
	linePace = time.Second / 10
	// logPace is how often a log gets a line.
	logPace = 10 * time.Second
)

// replaceLine goes to the beginning of a terminal's line, and clears it (ECMA-48, EL).
const replaceLine = "\r\x1b[K"

// progress shows how far a migration is: on a terminal in one line, and else as lines.
type progress struct {
	out      io.Writer
	name     string
	terminal bool
	next     time.Time // of a line; zero before anything is done
}

func newProgress(out io.Writer, name string) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, name: name, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

func (p *progress) show(m migrate.Progress) {
	pace, begin, end := logPace, "", "\n"
	if p.terminal {
		pace, begin, end = linePace, replaceLine, ""
	}
	if m.Waiting > 0 {
		fmt.Fprintf(p.out, "%s%s: waiting %s, until no API server stores in an old version any more (--propagation-delay)\n", begin, p.name, m.Waiting)
		return
	}
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
	if p.terminal {
		fmt.Fprint(p.out, replaceLine)
	}
}

package crdmigrate

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// logPace is how often a log gets a line.
const logPace = 10 * time.Second

// progress shows how far a migration is: as a bar on a terminal, and else as lines.
type progress struct {
	out  io.Writer
	name string
	bar  *progressbar.ProgressBar // nil if there is no terminal
	done int64                    // objects, when the bar was last drawn
	next time.Time                // of a line; zero before anything is done
}

func newProgress(out io.Writer, name string) *progress {
	p := &progress{out: out, name: name}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(name),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("objects"),
			progressbar.OptionThrottle(time.Second/10),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

func (p *progress) show(m migrate.Progress) {
	switch {
	case m.Waiting > 0:
		fmt.Fprintf(p.out, "%s: waiting %s, until no API server stores in an old version any more (--settle)\n", p.name, m.Waiting)
	case p.bar != nil:
		if m.Done() < p.done {
			p.bar.Reset() // the definition has changed, and it begins again
		}
		p.done = m.Done()
		p.bar.ChangeMax64(m.Total)
		_ = p.bar.Set64(m.Done()) // it is only for the eye
	case p.next.IsZero():
		p.next = time.Now().Add(logPace)
	case time.Now().After(p.next):
		p.next = time.Now().Add(logPace)
		fmt.Fprintf(p.out, "%s: %d of %d objects, %d rewritten, %d failed\n", p.name, m.Done(), m.Total, m.Rewritten, m.Failed)
	}
}

// end makes room for what comes after.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

package crdcheck

import (
	"fmt"
	"io"
	"os"
	"time"
)

// patience is how long a command runs before it shows how far it is.
const patience = time.Second

// progress is a line of a terminal that says how far a command is.
type progress struct {
	out   io.Writer // nil if it is no terminal
	begin time.Time
	shown bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{begin: time.Now()}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.out = out
		}
	}
	return p
}

// show replaces the line.
func (p *progress) show(format string, args ...any) {
	if p.out == nil || time.Since(p.begin) < patience {
		return
	}
	p.shown = true
	fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
}

// clear makes room for something else.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

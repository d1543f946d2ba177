package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	// patience is how long a command runs before it shows how far it is.
	patience = time.Second
	// pace is how long what it shows stays.
	pace = time.Second / 10
)

// progress is a line of a terminal that says how far a command is.
type progress struct {
	out   io.Writer  // nil if it is not a terminal
	width func() int // of the terminal; 0 if it is not known
	now   func() time.Time
	next  time.Time // before this, nothing is shown
	shown bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{now: time.Now, next: time.Now().Add(patience)}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.out = out
		p.width = func() int {
			width, _, _ := term.GetSize(int(file.Fd()))
			return width
		}
	}
	return p
}

// show replaces the line, if it was not just replaced.
func (p *progress) show(format string, args ...any) {
	if p.out == nil || p.now().Before(p.next) {
		return
	}
	p.next, p.shown = p.now().Add(pace), true
	line := []rune(fmt.Sprintf(format, args...))
	if width := p.width(); width > 0 && len(line) >= width { // a line that is full would wrap
		line = line[:width-1]
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", string(line))
}

// clear makes room for something else.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

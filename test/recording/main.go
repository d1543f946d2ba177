// Command recording reads what `make demo` prints, and writes some of its steps as an SVG with the
// look of a terminal. `make recording` writes docs/demo.svg.
package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
)

// shown are the steps of the recording.
var shown = []string{
	"v1 reviews: unknown toppings are denied, all in one answer",
	"v1 reviews: a double portion is quantity 2",
	"v1 reviews: the cost appears, and follows the price of a topping",
	"v1 reviews: an overwritten CA bundle is repaired",
	"v1 reviews: the Secret is deleted, and pizzas can still be read",
}

const (
	columns, rows = 104, 30 // of a screen
	seconds       = 8       // that it stays
	charWidth     = 8.4     // pixels, at a font size of 14
	lineHeight    = 18
	margin        = 16
)

func main() {
	if err := run(os.Stdin, os.Stdout, shown); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(demo io.Reader, out io.Writer, shown []string) error {
	steps, summary, err := parse(demo)
	if err != nil {
		return err
	}
	screens := [][]string{nil}
	for i, name := range shown {
		lines, ok := steps[name]
		if !ok {
			return fmt.Errorf("step %q: not in the demo's output", name)
		}
		if i == len(shown)-1 {
			lines = append(lines, summary)
		}
		last := &screens[len(screens)-1]
		if len(*last) > 0 && len(*last)+len(lines) > rows {
			screens = append(screens, nil)
			last = &screens[len(screens)-1]
		}
		*last = append(*last, lines...)
	}
	return write(out, screens)
}

// parse returns the lines of each step, wrapped, with its title first and an empty line last, and
// the last line of the demo. A step that failed is an error.
func parse(demo io.Reader) (steps map[string][]string, summary string, err error) {
	steps = map[string][]string{}
	name := ""
	scanner := bufio.NewScanner(demo)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		title, isTitle := strings.CutPrefix(line, "▸ ")
		switch {
		case isTitle:
			_, name, _ = strings.Cut(title, " ")
			_, short, _ := strings.Cut(name, ": ")
			steps[name] = []string{"▸ " + short}
		case strings.HasPrefix(line, "✗"):
			return nil, "", fmt.Errorf("step %q failed: %s", name, line)
		case line != "":
			summary = line
			if name != "" {
				steps[name] = append(steps[name], wrap(line)...)
			}
			if strings.HasPrefix(line, "✓") {
				steps[name] = append(steps[name], "")
				name = ""
			}
		}
	}
	return steps, summary, scanner.Err()
}

// wrap cuts a line into lines of a screen.
func wrap(line string) (lines []string) {
	all := []rune(line)
	for len(all) > columns {
		lines = append(lines, string(all[:columns]))
		all = append([]rune("    "), all[columns:]...)
	}
	return append(lines, string(all))
}

// write shows the screens one after the other, and the first one alone where nothing moves.
func write(out io.Writer, screens [][]string) error {
	const width, height = 2*margin + columns*charWidth, 2*margin + rows*lineHeight
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="A recording of make demo">
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #c9d1d9; white-space: pre }
.title { fill: #79c0ff; font-weight: bold } .command { fill: #ffffff } .passed { fill: #56d364 }
.screen { opacity: 0; animation: show %ds infinite step-end } .screen:first-of-type { opacity: 1 }
@keyframes show { 0%% { opacity: 1 } %.2f%% { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { .screen { animation: none } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, width, height, seconds*len(screens), 100/float64(len(screens)))
	for i, lines := range screens {
		fmt.Fprintf(w, "<g class=\"screen\" style=\"animation-delay: %ds\">\n", i*seconds)
		for row, line := range lines {
			if line == "" {
				continue
			}
			fmt.Fprintf(w, `<text class="%s" x="%d" y="%d" xml:space="preserve">`, class(line), margin, margin+(row+1)*lineHeight-4)
			if err := xml.EscapeText(w, []byte(line)); err != nil {
				return err
			}
			fmt.Fprintln(w, "</text>")
		}
		fmt.Fprintln(w, "</g>")
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

func class(line string) string {
	switch {
	case strings.HasPrefix(line, "▸"):
		return "title"
	case strings.HasPrefix(line, "$"):
		return "command"
	case strings.HasPrefix(line, "✓"), strings.HasPrefix(line, "demo: "):
		return "passed"
	default:
		return "output"
	}
}

package mdtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Page is a page of documentation.
type Page struct {
	Path     string
	Text     string
	Sections []Section // in their order; the first is what stands before all headings, if anything does
}

// Section is what stands under a heading, up to the next heading of any level.
type Section struct {
	Title  string // the text of the heading
	Level  int    // how many # it has; none before the first heading
	Text   string // all of it but the heading
	Blocks []Block
}

// Block is what stands between two fences.
type Block struct {
	Kind string // what stands behind the opening fence: go, console, yaml …
	Text string // every line ends with a newline
	Line int    // of the opening fence, from one
}

// Command is a line that begins with "$ ", and what follows it up to the next one.
type Command struct {
	Line   string // without the dollar sign
	Output string
}

// Read reads a page. A file that cannot be read, and a fence that is never closed, fail the
// test.
func Read(t testing.TB, path string) *Page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, open := parse(string(text))
	if open > 0 {
		t.Fatalf("%s:%d: the block never ends", path, open)
	}
	p.Path = path
	return p
}

// parse returns the page, and the line of a fence that is not closed.
func parse(text string) (_ *Page, open int) {
	p := &Page{Text: text}
	section := Section{}
	var block *Block
	fence, number := "", 0
	end := func() {
		if section.Level > 0 || strings.TrimSpace(section.Text) != "" {
			p.Sections = append(p.Sections, section)
		}
	}
	for line := range strings.Lines(text) {
		number++
		bare := strings.TrimRight(line, "\r\n")
		marks := bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]
		level := len(bare) - len(strings.TrimLeft(bare, "#"))
		switch {
		case block != nil && marks == fence && bare == fence:
			section.Blocks = append(section.Blocks, *block)
			block = nil
		case block != nil:
			block.Text += bare + "\n"
		case len(marks) >= 3 && !strings.Contains(bare[len(marks):], "`"): // else it is code within a line
			block, fence = &Block{Kind: strings.TrimSpace(bare[len(marks):]), Line: number}, marks
		case level > 0 && strings.HasPrefix(bare[level:], " "):
			end()
			section = Section{Title: strings.TrimSpace(bare[level:]), Level: level}
			continue
		}
		section.Text += bare + "\n"
	}
	end()
	if block != nil {
		return p, block.Line
	}
	return p, 0
}

// Section returns the section with a title. A page without it fails the test.
func (p *Page) Section(t testing.TB, title string) Section {
	t.Helper()
	i := slices.IndexFunc(p.Sections, func(s Section) bool { return s.Title == title })
	if i < 0 {
		t.Fatalf("%s has no section %q", p.Path, title)
	}
	return p.Sections[i]
}

// Blocks returns all blocks of a kind, in their order.
func (p *Page) Blocks(kind string) (all []Block) {
	for _, s := range p.Sections {
		all = append(all, s.BlocksOf(kind)...)
	}
	return all
}

// BlocksOf returns the blocks of a kind, in their order.
func (s Section) BlocksOf(kind string) (all []Block) {
	for _, b := range s.Blocks {
		if b.Kind == kind {
			all = append(all, b)
		}
	}
	return all
}

// Commands returns the commands of a block. Text before the first command
// is left out.
func (b Block) Commands() (all []Command) {
	for line := range strings.Lines(b.Text) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			all = append(all, Command{Line: strings.TrimSpace(command)})
		} else if len(all) > 0 {
			all[len(all)-1].Output += line
		}
	}
	return all
}

// Commands returns the commands of all blocks that are a console, in their order.
func (p *Page) Commands() (all []Command) {
	for _, b := range p.Blocks("console") {
		all = append(all, b.Commands()...)
	}
	return all
}

// File returns the name of the file that a block is, and whether it is one: its first line is
// a comment with nothing but the name, such as "# backup.yaml" or "// main.go".
func (b Block) File() (name string, ok bool) {
	first, _, _ := strings.Cut(b.Text, "\n")
	match := fileName.FindStringSubmatch(first)
	if match == nil {
		return "", false
	}
	return match[1], true
}

var fileName = regexp.MustCompile(`^(?:#|//) ([\w./-]+\.\w+)$`)

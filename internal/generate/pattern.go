package generate

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// pattern makes text that a regular expression matches.
type pattern struct {
	match *regexp.Regexp
	tree  *syntax.Regexp
}

func compilePattern(s string) (*pattern, error) {
	match, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	tree, _ := syntax.Parse(s, syntax.Perl) // as Compile has done
	return &pattern{match, tree}, nil
}

// mustCompilePattern is for the patterns of this module.
func mustCompilePattern(s string) *pattern {
	p, err := compilePattern(s)
	if err != nil {
		panic(err)
	}
	return p
}

// text returns text with about this many characters more than the shortest. Without a source of
// randomness, they are the first that match. The text may not match, because assertions such as a word
// boundary are ignored.
func (p *pattern) text(rng *rand.Rand, more int) string {
	w := &patternWriter{rng: rng, more: more}
	w.write(p.tree)
	return w.out.String()
}

type patternWriter struct {
	out  strings.Builder
	rng  *rand.Rand // nil for the first characters that match
	more int        // characters that are still to be added to the shortest text
}

func (w *patternWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.out.WriteRune(r)
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.class([]rune{' ', '~', 0xa0, 0x2ff, 0x4e00, 0x9fff})
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			w.write(sub)
		}
	case syntax.OpAlternate:
		i, least := 0, shortest(re)
		if w.rng != nil {
			i = w.rng.IntN(len(re.Sub))
		}
		w.more = max(0, w.more-(shortest(re.Sub[i])-least))
		w.write(re.Sub[i])
	case syntax.OpStar:
		w.repeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		w.repeat(re.Sub[0], 1, -1)
	case syntax.OpQuest:
		w.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		w.repeat(re.Sub[0], re.Min, re.Max)
	}
}

func (w *patternWriter) repeat(sub *syntax.Regexp, least, most int) {
	for range least {
		w.write(sub)
	}
	share := w.more // the rest is for later parts
	if w.rng != nil && w.rng.IntN(4) == 0 {
		share = w.rng.IntN(w.more + 1)
	}
	rest := w.more - share
	w.more = share
	for n := least; (most < 0 || n < most) && w.more > 0; n++ {
		w.more -= max(shortest(sub), 1)
		if w.more < 0 {
			break
		}
		w.write(sub)
	}
	w.more = max(w.more, 0) + rest
}

// shortest returns the length of the shortest text that matches.
func shortest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n += shortest(sub)
		}
		return n
	case syntax.OpAlternate:
		n := shortest(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, shortest(sub))
		}
		return n
	case syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * shortest(re.Sub[0])
	}
	return 0
}

// class writes a character of a class, which is pairs of first and last, most often ASCII.
func (w *patternWriter) class(pairs []rune) {
	if len(pairs) == 0 {
		return
	}
	within := func(first, last rune) (out []rune) {
		for i := 0; i < len(pairs); i += 2 {
			if a, b := max(pairs[i], first), min(pairs[i+1], last); a <= b {
				out = append(out, a, b)
			}
		}
		return out
	}
	if w.rng == nil {
		for _, r := range "a0A-" {
			if len(within(r, r)) > 0 {
				w.out.WriteRune(r)
				return
			}
		}
	}
	for _, some := range [][]rune{
		within(' ', '~'), within(0xa1, 0x9fff), within(0, 0xd7ff), within(0xe000, unicode.MaxRune),
	} {
		if len(some) > 0 && (w.rng == nil || w.rng.IntN(10) < 8) {
			pairs = some
			break
		}
	}
	if w.rng == nil {
		w.out.WriteRune(pairs[0])
		return
	}
	n := 0
	for i := 0; i < len(pairs); i += 2 {
		n += int(pairs[i+1]-pairs[i]) + 1
	}
	n = w.rng.IntN(n)
	for i := 0; i < len(pairs); i += 2 {
		if size := int(pairs[i+1]-pairs[i]) + 1; n >= size {
			n -= size
			continue
		}
		w.out.WriteRune(pairs[i] + rune(n))
		return
	}
}

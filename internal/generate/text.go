package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// texts is what the strings of a node may be.
type texts struct {
	least, most int // characters
	patterns    []*pattern
	formats     []string
	sources     []*pattern // of the patterns and formats
	edges       []int      // lengths to try, in ascending order
	greedy      bool       // texts are made as long as they may be
}

const (
	// longest is how long a string may have to be: an object in etcd is not larger.
	longest = 1 << 20
	// long is how long a string is that need not be longer.
	long = 1 << 12
)

// usualLengths are next to where text is often cut: the lengths of labels, of names of
// objects, and of columns.
var usualLengths = []int{20, 21, 32, 33, 63, 64, 128, 253, 254, 256}

// free is any text.
var free = texts{most: math.MaxInt32, edges: usualLengths}

// Text returns text: empty for zero, the shorter the smaller the draw is, of up to 256
// characters. Some of it is mistaken for numbers and other things.
func Text(draw uint64) string {
	s, _ := free.text(draw)
	return s
}

// compileTexts returns an error if there is no string.
func compileTexts(path string, e *edges, all []*structuralschema.ValueValidation) (texts, error) {
	t := texts{most: math.MaxInt32}
	for _, v := range all {
		t.least = max(t.least, limit(v.MinLength, 0))
		t.most = min(t.most, limit(v.MaxLength, math.MaxInt32))
		if v.Pattern != "" {
			p, err := compilePattern(v.Pattern)
			if err != nil {
				return t, fmt.Errorf("no string is accepted: pattern: %w", err)
			}
			t.patterns = append(t.patterns, p)
			t.sources = append(t.sources, p)
		}
		if expression, ok := formatPatterns[normalFormat(v.Format)]; ok {
			p, err := compilePattern("^" + expression + "$")
			if err != nil {
				return t, err
			}
			t.formats = append(t.formats, v.Format)
			t.sources = append(t.sources, p)
		}
	}
	switch {
	case t.least > t.most:
		return t, fmt.Errorf("no string is at least %d and at most %d characters long", t.least, t.most)
	case t.least > longest:
		return t, fmt.Errorf("minLength is %d: no string longer than %d is made", t.least, longest)
	}
	t.edges = e.sizes(path, "minLength", "maxLength", t.least, t.most, max(t.least, long), usualLengths)
	return t, nil
}

func (t *texts) fits(s string) bool {
	if n := utf8.RuneCountInString(s); n < t.least || n > t.most {
		return false
	}
	for _, p := range t.patterns {
		if !p.match.MatchString(s) {
			return false
		}
	}
	for _, f := range t.formats {
		if !hasFormat(f, s) {
			return false
		}
	}
	return true
}

// text returns false if it finds no string. A fifth of what is not made of the smallest draws
// has a length that was chosen for it, if there are strings of that length.
func (t *texts) text(draw uint64) (string, bool) {
	if f := (fraction(draw) - 0.8) * 5; f >= 0 && len(t.edges) > 0 {
		size, rest := edge(t.edges, f)
		of := texts{least: size, most: size, patterns: t.patterns, formats: t.formats, sources: t.sources, greedy: true}
		fill := draw
		if rest < 0.5 {
			fill = 0 // a few letters again and again: a text that was found shrinks to it
		}
		few := 4 * max(1, len(t.sources))
		if s, ok := of.seek(fill, few); ok {
			return s, true
		}
		of.most = min(t.most, size+9) // for a pattern of which no text has that length
		if s, ok := of.seek(draw, few); ok {
			return s, true
		}
	}
	return t.seek(draw, 96)
}

func (t *texts) seek(draw uint64, tries int) (string, bool) {
	for try := range tries {
		for _, s := range t.guess(draw, try) {
			if t.fits(s) {
				return s, true
			}
		}
	}
	return "", false
}

// guess returns strings that may fit, the better ones first.
func (t *texts) guess(draw uint64, try int) []string {
	x := draw / unit
	rng := rand.New(rand.NewPCG(x, uint64(try)))
	if len(t.sources) == 0 {
		return []string{t.phrase(draw, try, rng)}
	}
	source := t.sources[try%len(t.sources)]
	round := try / len(t.sources)
	short := shortest(source.tree)
	if x < named && round < 24 {
		// of the least the shortest first, but for x of them
		more := round + int(x)
		if round == 0 {
			more += max(0, t.least-short)
		}
		s := source.text(nil, min(more, longest), false)
		return t.around(s, strings.Repeat("a", min(more, longest)), try)
	}
	more := rng.IntN(20)
	switch {
	case t.greedy:
		more = t.least - short + rng.IntN(1+t.most-t.least)
	case round%4 == 3 && t.most < longest:
		more = t.most - short
	case round%4 > 0 && t.least > short:
		more = t.least - short + rng.IntN(1+min(t.most-t.least, 20))
	case t.most < longest:
		more = min(more, t.most-short)
	}
	s := source.text(rng, max(0, min(more, longest)), t.greedy)
	out := t.around(s, phrase(rng, rng.IntN(5)), try)
	// What is around text of a format may be overlooked by the server's check of it.
	if round == 0 && len(t.formats) == 0 && rng.IntN(4) == 0 {
		slices.Reverse(out)
	}
	return out
}

// around returns text of a source, and others in which it is: a pattern without anchors says
// nothing of what is around it. The server's check of some formats overlooks it too: no text
// gets its length from there.
func (t *texts) around(s, more string, try int) []string {
	if t.greedy && len(t.formats) > 0 {
		return []string{s}
	}
	if len(t.sources) == 1 {
		return []string{s, s + more, more + s}
	}
	other := t.sources[(try+1)%len(t.sources)].text(nil, 0, false)
	return []string{s, s + more, more + s, s + other, other + s, s + more + other, other + more + s}
}

// phrase is text of the lengths allowed.
func (t *texts) phrase(draw uint64, try int, rng *rand.Rand) string {
	if x := draw/unit + uint64(try); x < named {
		return strings.Repeat("a", min(t.least+int(x), t.most))
	}
	switch f := fraction(draw); {
	case t.least == t.most:
		return phrase(rng, t.least)
	case f < 0.05:
		return phrase(rng, t.least)
	case f < 0.25:
		if s := mistaken(rng); t.fits(s) {
			return s
		}
	}
	return phrase(rng, t.least+rng.IntN(1+min(t.most-t.least, 19)))
}

// mistaken is what is taken for something else: digits for a number, and what YAML or a
// parser of some kind has a meaning for.
func mistaken(rng *rand.Rand) string {
	if rng.IntN(2) == 0 {
		return odd[rng.IntN(len(odd))]
	}
	var b strings.Builder
	if rng.IntN(3) > 0 {
		b.WriteByte('0')
	}
	for range 1 + rng.IntN(12) {
		b.WriteByte('0' + byte(rng.IntN(10)))
	}
	return b.String()
}

var odd = [...]string{
	"", " ", "0", "1", "-1", "+1", "1.50", "1e3", "0x1F", "1_000", "true", "null", "no", "~", "a b", " a", "a ", "a\n", "\ta",
	"a/b", "a: b", "a=b,c=d", "http://a/b?c=d&e=f#g", "[]", "{}", `{"a":1}`, `"`, `\`, "\n", "é", "日本", "<&>", "%s", "50%",
	"10Mi", "1000m", "90s", "2000-01-01", "\U0001f355", "\u2028", "\x00",
}

// marks are characters that somebody may take for the end or the beginning of something.
const marks = "  /:,;.-_=*#@\"'`\\<>&%~0AZ\t"

// phrase is text of so many characters: ASCII, many marks among it, letters of two bytes and
// of three.
func phrase(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		first, count := ' ', int32('~'-' ')+1
		switch rng.IntN(8) {
		case 0:
			first, count = '\u00a0', 0x210
		case 1:
			first, count = '\u4e00', 0x5200
		case 2, 3:
			first, count = rune(marks[rng.IntN(len(marks))]), 1
		}
		b.WriteRune(first + rng.Int32N(count))
	}
	return b.String()
}

// word is n as letters, such as a DNS label may hold; none for zero.
func word(n uint64) string {
	var b strings.Builder
	for ; n > 0; n /= 26 {
		b.WriteByte('a' + byte(n%26))
	}
	return b.String()
}

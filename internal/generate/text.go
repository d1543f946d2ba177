package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// texts are the strings of a node.
type texts struct {
	least, most int // characters
	patterns    []*pattern
	formats     []string
	sources     []*pattern // of the patterns and formats
	edges       []int      // lengths to try, in ascending order
}

const (
	// longest is the largest number of characters that a string may need, because no object in etcd
	// is larger.
	longest = 1 << 20
	// long is the largest number of characters of a string, unless the schema requires more.
	long = 1 << 12
)

// usualLengths are lengths around those to which text is often cut: of labels, of names of objects,
// and of columns.
var usualLengths = []int{20, 21, 32, 33, 63, 64, 128, 253, 254, 256}

// free is any text.
var free = texts{most: math.MaxInt32, edges: usualLengths}

// Text returns up to 256 characters: none for zero, and fewer for small draws. Some texts look like
// numbers, dates, or syntax of YAML.
func Text(draw uint64) string {
	s, _ := free.text(draw)
	return s
}

// Matching returns a function that makes text which a pattern matches: the shortest for zero.
func Matching(expression string) func(draw uint64) string {
	p := mustCompilePattern(expression)
	t := texts{most: math.MaxInt32, patterns: []*pattern{p}, sources: []*pattern{p}}
	return func(draw uint64) string {
		s, _ := t.text(draw)
		return s
	}
}

// compileTexts returns an error if there is no string.
func compileTexts(path string, e *edges, all flat) (texts, error) {
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
			t.formats = append(t.formats, v.Format)
			t.sources = append(t.sources, mustCompilePattern("^"+expression+"$"))
		}
	}
	switch {
	case t.least > t.most:
		return t, fmt.Errorf("no string has at least %d and at most %d characters", t.least, t.most)
	case t.least > longest:
		return t, fmt.Errorf("minLength is %d: no string longer than %d is made", t.least, longest)
	}
	t.edges = e.sizes(path, "minLength", "maxLength", t.least, t.most, max(t.least, long), usualLengths)
	return t, nil
}

func (t *texts) fits(s string) bool {
	n := utf8.RuneCountInString(s)
	return n >= t.least && n <= t.most &&
		!slices.ContainsFunc(t.patterns, func(p *pattern) bool { return !p.match.MatchString(s) }) &&
		!slices.ContainsFunc(t.formats, func(format string) bool { return !strfmt.Default.Validates(format, s) })
}

// text returns a string, or false if it finds none. A fifth of the larger draws make text of one of
// the lengths to try, if there is such text.
func (t *texts) text(draw uint64) (string, bool) {
	if f := (fraction(draw) - 0.8) * 5; f >= 0 && len(t.edges) > 0 {
		size, rest := edge(t.edges, f)
		of := texts{least: size, most: size, patterns: t.patterns, formats: t.formats, sources: t.sources}
		fill := draw
		if rest < 0.5 {
			fill = 0 // a few letters repeated, to which other text shrinks
		}
		few := 4 * max(1, len(t.sources))
		if s, ok := of.seek(fill, few); ok {
			return s, true
		}
		of.most = min(t.most, size+9) // a pattern may have no text of that length
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

// guess returns strings that may fit, the likely ones first.
func (t *texts) guess(draw uint64, try int) []string {
	x := draw / unit
	rng := rand.New(rand.NewPCG(x, uint64(try)))
	if len(t.sources) == 0 {
		return []string{t.phrase(draw, try, rng)}
	}
	source, round := t.sources[try%len(t.sources)], try/len(t.sources)
	short := shortest(source.tree)
	if x < named && round < 24 {
		// the shortest text with x more characters
		more := round + int(x)
		if round == 0 {
			more += max(0, t.least-short)
		}
		more = min(more, longest)
		return t.around(source.text(nil, more), strings.Repeat("a", more), try)
	}
	more := rng.IntN(20)
	switch {
	case round%4 == 3 && t.most < longest:
		more = t.most - short
	case round%4 > 0 && t.least > short:
		more = t.least - short + rng.IntN(1+min(t.most-t.least, 20))
	case t.most < longest:
		more = min(more, t.most-short)
	}
	out := t.around(source.text(rng, max(0, min(more, longest))), phrase(rng, rng.IntN(5)), try)
	if round == 0 && len(t.formats) == 0 && rng.IntN(4) == 0 {
		slices.Reverse(out)
	}
	return out
}

// around returns text of a source, and longer texts that contain it, which a pattern without
// anchors matches too.
func (t *texts) around(s, more string, try int) []string {
	switch {
	case len(t.sources) == 1 && len(t.formats) == 1:
		return []string{s}
	case len(t.sources) == 1:
		return []string{s, s + more, more + s}
	}
	other := t.sources[(try+1)%len(t.sources)].text(nil, 0)
	return []string{s, s + more, more + s, s + other, other + s, s + more + other, other + more + s}
}

// phrase returns text of an allowed length.
func (t *texts) phrase(draw uint64, try int, rng *rand.Rand) string {
	if x := draw/unit + uint64(try); x < named {
		return strings.Repeat("a", min(t.least+int(x), t.most))
	}
	f := fraction(draw)
	if f < 0.05 || t.least == t.most {
		return phrase(rng, t.least)
	}
	if f < 0.25 {
		if s := ambiguous(rng); t.fits(s) {
			return s
		}
	}
	return phrase(rng, t.least+rng.IntN(1+min(t.most-t.least, 19)))
}

// ambiguous returns text that looks like something else: digits, or what YAML or another parser
// gives a meaning.
func ambiguous(rng *rand.Rand) string {
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

// marks are characters that parsers take for delimiters.
const marks = "  /:,;.-_=*#@\"'`\\<>&%~0AZ\t"

// phrase returns text of n characters: ASCII with many marks, and letters of two and three bytes.
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
	if b.String() == "<<" {
		return "<" // sigs.k8s.io/yaml does not quote this name of a member, and merges its value
	}
	return b.String()
}

// Word returns n as lower case letters, none for zero.
func Word(n uint64) string {
	var b strings.Builder
	for ; n > 0; n /= 26 {
		b.WriteByte('a' + byte(n%26))
	}
	return b.String()
}

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
	sources     []textSource
}

// textSource makes text that has one of the patterns or formats.
type textSource struct {
	*pattern
	finish func(string) string // nil if there is nothing to finish
}

// longest is how long a string may have to be: an object in etcd is not larger.
const longest = 1 << 20

// compileTexts returns an error if there is no string.
func compileTexts(all []*structuralschema.ValueValidation) (texts, error) {
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
			t.sources = append(t.sources, textSource{pattern: p})
		}
		if expression, finish, ok := formatPattern(v.Format); ok {
			p, err := compilePattern("^" + expression + "$")
			if err != nil {
				return t, err
			}
			t.formats = append(t.formats, v.Format)
			t.sources = append(t.sources, textSource{p, finish})
		}
	}
	switch {
	case t.least > t.most:
		return t, fmt.Errorf("no string is at least %d and at most %d characters long", t.least, t.most)
	case t.least > longest:
		return t, fmt.Errorf("minLength is %d: no string longer than %d is made", t.least, longest)
	}
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

// text returns false if it finds no string.
func (t *texts) text(draw uint64) (string, bool) {
	for try := range 96 {
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
		s := source.text(nil, min(more, longest))
		return t.around(s, strings.Repeat("a", min(more, longest)), try)
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
	s := source.text(rng, max(0, min(more, longest)))
	out := t.around(s, phrase(rng, rng.IntN(5)), try)
	// What is around text of a format may be overlooked by the server's check of it.
	if round == 0 && len(t.formats) == 0 && rng.IntN(4) == 0 {
		slices.Reverse(out)
	}
	return out
}

// around returns text of a source, and others in which it is: a pattern without anchors says
// nothing of what is around it.
func (t *texts) around(s, more string, try int) []string {
	if len(t.sources) == 1 {
		return []string{s, s + more, more + s}
	}
	other := t.sources[(try+1)%len(t.sources)].text(nil, 0)
	return []string{s, s + more, more + s, s + other, other + s, s + more + other, other + more + s}
}

// text is from the source, and has about so many characters more than the least.
func (s textSource) text(rng *rand.Rand, more int) string {
	out := s.pattern.text(rng, more)
	if s.finish != nil {
		out = s.finish(out)
	}
	return out
}

// phrase is text of the lengths allowed.
func (t *texts) phrase(draw uint64, try int, rng *rand.Rand) string {
	if x := draw/unit + uint64(try); x < named {
		return strings.Repeat("a", min(t.least+int(x), t.most))
	}
	switch f := fraction(draw); {
	case f < 0.08:
		return phrase(rng, t.least)
	case f < 0.16 && t.most <= 1<<9:
		return phrase(rng, t.most)
	case f < 0.26:
		if s := odd[rng.IntN(len(odd))]; t.fits(s) {
			return s
		}
	}
	return phrase(rng, t.least+rng.IntN(1+min(t.most-t.least, 19)))
}

// odd is what is mistaken for something else, by YAML for example.
var odd = [...]string{"", " ", "0", "1", "-1", "true", "null", "~", "1.50", "1e3", "08", "a b", "a/b", "a: b", "[]", "{}", `"`, `\`, "\n", "é", "日本", "<&>", "%s", "\U0001f355", "\u2028", "\x00"}

// phrase is text of so many characters: ASCII, letters of two bytes and of three.
func phrase(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		first, count := ' ', int32('~'-' ')+1
		switch rng.IntN(8) {
		case 0:
			first, count = '\u00a0', 0x210
		case 1:
			first, count = '\u4e00', 0x5200
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

package breaking

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Patterns are regular, so whether one allows less than another one is decidable: both are run side by
// side on all strings, the shortest first, and strings that lead to the same states are tried once.

const (
	// maxWork bounds how many instructions are run, to a second or less.
	maxWork = 50_000_000
	// maxCounted is up to which length states differ by the length of the string.
	maxCounted = 300
)

// texts is a set of strings.
type texts struct {
	pattern  string // "" for any
	min, max int64  // runes; -1 for any
}

// beyond returns up to five of the shortest strings in one set that are not in another one. If decided
// is true and there are none, then each string of the first set is in the second.
func beyond(was, is texts) (found []any, decided bool) {
	before, err := compilePattern(was.pattern)
	now, other := compilePattern(is.pattern)
	counted := max(was.min, is.min, is.max+1, 0)
	if err != nil || other != nil || counted > maxCounted {
		return nil, false
	}
	type state struct {
		before, now run
		text        []rune
	}
	letters := alphabet(before, now)
	seen := map[string]bool{}
	open := []state{{}}
	work := 0
	for len(open) > 0 && len(found) < 5 {
		if work += len(letters) * (len(before.Inst) + len(now.Inst)); work > maxWork {
			return found, false
		}
		at := open[0]
		open = open[1:]
		last, length := rune(-1), int64(len(at.text))
		if length > 0 {
			last = at.text[length-1]
		}
		within := func(t texts) bool { return length >= t.min && (t.max < 0 || length <= t.max) }
		matches := before.step(at.before, last, -1).matched && within(was)
		if matches && !(now.step(at.now, last, -1).matched && within(is)) {
			found = append(found, string(at.text))
		}
		if was.max >= 0 && length >= was.max {
			continue
		}
		for _, next := range letters {
			to := state{before.step(at.before, last, next), now.step(at.now, last, next), append(slices.Clip(at.text), next)}
			key := binary.AppendVarint(to.before.key(), min(length+1, counted))
			// Assertions such as ^ and \b tell newlines, letters and other runes apart.
			key = append(append(key, to.now.key()...), byte(syntax.EmptyOpContext(next, -1)))
			if !seen[string(key)] {
				seen[string(key)] = true
				open = append(open, to)
			}
		}
	}
	return found, true
}

type program struct{ *syntax.Prog }

func compilePattern(pattern string) (program, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return program{}, err
	}
	prog, err := syntax.Compile(re.Simplify())
	return program{prog}, err
}

// run is how far a program is in a string.
type run struct {
	at      []uint32 // instructions, in order
	matched bool     // a part of the string
}

func (r run) key() (key []byte) {
	if r.matched {
		return []byte{1}
	}
	key = binary.AppendUvarint([]byte{0}, uint64(len(r.at)))
	for _, pc := range r.at {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	return key
}

// step reads the next rune after the last one; both are -1 at the ends. A match may begin anywhere.
func (p program) step(from run, last, next rune) (to run) {
	if from.matched {
		return from
	}
	context := syntax.EmptyOpContext(last, next)
	visited := make([]bool, len(p.Inst))
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if visited[pc] {
			return
		}
		visited[pc] = true
		switch inst := &p.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(inst.Out)
			visit(inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^context == 0 {
				visit(inst.Out)
			}
		case syntax.InstMatch:
			to.matched = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if next >= 0 && inst.MatchRune(next) {
				to.at = append(to.at, inst.Out)
			}
		}
	}
	visit(uint32(p.Start))
	for _, pc := range from.at {
		visit(pc)
	}
	slices.Sort(to.at)
	to.at = slices.Compact(to.at)
	return to
}

// alphabet returns a rune of each class of runes that no program tells apart, readable ones first.
func alphabet(programs ...program) (letters []rune) {
	bounds := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, 0xD800, 0xE000, unicode.MaxRune + 1}
	for _, p := range programs {
		for _, inst := range p.Inst {
			for i, r := range inst.Rune {
				if len(inst.Rune) == 1 { // with the other cases, if it has the flag
					for fold := unicode.SimpleFold(r); fold != r; fold = unicode.SimpleFold(fold) {
						bounds = append(bounds, fold, fold+1)
					}
					bounds = append(bounds, r, r+1)
				} else {
					bounds = append(bounds, r+rune(i%2))
				}
			}
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	const readable = "a0A-_./:x1b2c3d4e5f6789 BCD*@#éж語"
	seen := map[int]bool{}
	for _, letter := range append([]rune(readable), bounds[:len(bounds)-1]...) {
		class, begins := slices.BinarySearch(bounds, letter)
		if !begins {
			class--
		}
		if !seen[class] && bounds[class] != 0xD800 { // surrogates are not runes
			seen[class] = true
			letters = append(letters, letter)
		}
	}
	return letters
}

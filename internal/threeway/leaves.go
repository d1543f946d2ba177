package threeway

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"unicode"
)

// most is how many values of an element are compared.
const most = 1000

// seed is of the process: hashes are compared, and never kept.
var seed = maphash.MakeSeed()

// leafPath is the path of a value in an element, as a hash. That of the element is 0.
type leafPath uint64

// member returns the path of a member of an object.
func (p leafPath) member(name []byte) leafPath { return p.mix(maphash.Bytes(seed, name)) }

// element returns the path of any element of a list.
func (p leafPath) element() leafPath { return p.mix(1) }

// mix is the finalizer of SplitMix64.
func (p leafPath) mix(n uint64) leafPath {
	x := (uint64(p) + 0x9e3779b97f4a7c15) ^ n
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return leafPath(x ^ x>>31)
}

// leaves are the leaves of an element.
type leaves struct {
	all    []leaf
	values int
}

// leaf is a value that is not zero.
type leaf struct {
	path          leafPath
	exact, folded uint64 // hashes of the value, and of its letters and digits
	text          bool
}

// alike returns a hash that a leaf shares with those that differ only in case and
// punctuation.
func (f leaf) alike() uint64 { return uint64(f.path.mix(f.folded).mix(2)) }

// leavesOf returns the leaves of an element without a counterpart.
func (s *side) leavesOf(i int) *leaves {
	l := &leaves{}
	l.collect(s.reader, 0, s.all[i])
	return l
}

func (l *leaves) collect(r *reader, path leafPath, n *node) {
	if l.values++; l.values > most {
		return
	}
	switch {
	case n.is('{'):
		for _, kid := range r.kids(n) {
			l.collect(r, path.member(kid.name), kid)
		}
	case n.is('['):
		for _, kid := range r.kids(n) {
			l.collect(r, path.element(), kid)
		}
	case r.zero(n):
	case n.is('"'):
		text := string(unquote(n.text))
		exact, folded := maphash.String(seed, text), maphash.String(seed, fold(text))
		l.all = append(l.all, leaf{path, exact, folded, true})
	default:
		hash := maphash.Bytes(seed, n.text)
		l.all = append(l.all, leaf{path, hash, hash, false})
	}
}

// fold returns the letters and digits of s in lower case, or s if it has none.
func fold(s string) string {
	plain := make([]rune, 0, len(s))
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			plain = append(plain, unicode.ToLower(r))
		}
	}
	if len(plain) == 0 {
		return s
	}
	return string(plain)
}

// hashes returns two for each leaf, of which two leaves that differ only in case and
// punctuation share one. A leaf that is there several times has several of each, which
// are the same in every element that has it as often.
func (l *leaves) hashes() []uint64 {
	all := make([]uint64, 0, 2*len(l.all))
	for _, f := range l.all {
		all = append(all, uint64(f.path.mix(f.exact).mix(1)), f.alike())
	}
	slices.Sort(all)
	again, last := uint64(0), uint64(0)
	for i, hash := range all {
		if i > 0 && hash == last {
			again++
			all[i] = uint64(leafPath(hash).mix(again))
		} else {
			again = 0
		}
		last = hash
	}
	return all
}

// sort prepares the leaves for replaced.
func (l *leaves) sort() {
	slices.SortFunc(l.all, func(a, b leaf) int { return cmp.Compare(a.path, b.path) })
}

// replaced yields the strings of two elements at each path at which none is the same.
func (l *leaves) replaced(other *leaves) iter.Seq2[[]leaf, []leaf] {
	return func(yield func(was, is []leaf) bool) {
		a, b := l.all, other.all
		for len(a) > 0 && len(b) > 0 {
			switch c := cmp.Compare(a[0].path, b[0].path); {
			case c < 0:
				a = a[1:]
			case c > 0:
				b = b[1:]
			default:
				var was, is []leaf
				was, a = cut(a, a[0].path)
				is, b = cut(b, b[0].path)
				if was[0].text && is[0].text && !common(was, is) && !yield(was, is) {
					return
				}
			}
		}
	}
}

// cut returns the leaves at a path, which come first, and the rest.
func cut(all []leaf, p leafPath) (at, rest []leaf) {
	n := 0
	for n < len(all) && all[n].path == p {
		n++
	}
	return all[:n], all[n:]
}

func common(a, b []leaf) bool {
	if len(a) == 1 && len(b) == 1 {
		return a[0].folded == b[0].folded
	}
	there := make(map[uint64]bool, len(a))
	for _, f := range a {
		there[f.folded] = true
	}
	return slices.ContainsFunc(b, func(f leaf) bool { return there[f.folded] })
}

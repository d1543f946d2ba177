package listmatch

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

// Path is the path of a value in an element, as a hash. That of the element is 0.
type Path uint64

// Member returns the path of a member of an object.
func (p Path) Member(name []byte) Path { return p.mix(maphash.Bytes(seed, name)) }

// Element returns the path of any element of a list.
func (p Path) Element() Path { return p.mix(1) }

// mix is the finalizer of SplitMix64.
func (p Path) mix(n uint64) Path {
	x := (uint64(p) + 0x9e3779b97f4a7c15) ^ n
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return Path(x ^ x>>31)
}

// Leaves are the leaves of an element. Whoever collects them walks through the element,
// and stops where [Leaves.Enter] is false.
type Leaves struct {
	all    []leaf
	values int
}

// leaf is a value that is not zero.
type leaf struct {
	path          Path
	exact, folded uint64 // hashes of the value, and of its letters and digits
	text          bool
}

// alike returns a hash that a leaf shares with those that differ only in case and
// punctuation.
func (f leaf) alike() uint64 { return uint64(f.path.mix(f.folded).mix(2)) }

// Enter reports whether one more value may be looked at.
func (l *Leaves) Enter() bool {
	l.values++
	return l.values <= most
}

// Text adds a string that is not empty.
func (l *Leaves) Text(p Path, s string) {
	l.all = append(l.all, leaf{p, maphash.String(seed, s), maphash.String(seed, fold(s)), true})
}

// Value adds the text of another value that is not zero.
func (l *Leaves) Value(p Path, text []byte) {
	hash := maphash.Bytes(seed, text)
	l.all = append(l.all, leaf{p, hash, hash, false})
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
func (l *Leaves) hashes() []uint64 {
	all := make([]uint64, 0, 2*len(l.all))
	for _, f := range l.all {
		all = append(all, uint64(f.path.mix(f.exact).mix(1)), f.alike())
	}
	slices.Sort(all)
	again, last := uint64(0), uint64(0)
	for i, hash := range all {
		if i > 0 && hash == last {
			again++
			all[i] = uint64(Path(hash).mix(again))
		} else {
			again = 0
		}
		last = hash
	}
	return all
}

// sort prepares the leaves for replaced.
func (l *Leaves) sort() {
	slices.SortFunc(l.all, func(a, b leaf) int { return cmp.Compare(a.path, b.path) })
}

// replaced yields the strings of two elements at each path at which none is the same.
func (l *Leaves) replaced(other *Leaves) iter.Seq2[[]leaf, []leaf] {
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
func cut(all []leaf, p Path) (at, rest []leaf) {
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

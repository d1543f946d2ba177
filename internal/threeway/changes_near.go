package threeway

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// Near returns which changes may cause differences that [Diff] has found between an
// object without them and one with them: those that are nearest to each, by their paths.
// Changes outside of active are not looked at. Each set is returned once.
func (c Changes) Near(active []int, differences Changes) (sets [][]int) {
	by := index{changes: c, prefixes: map[uint64][]int{}, tokens: map[uint64]map[string][]int{}}
	var prefixes []uint64
	for _, i := range active {
		if c[i].elements != nil {
			continue
		}
		prefixes = appendPrefixes(prefixes[:0], c[i].path)
		for _, prefix := range prefixes {
			by.prefixes[prefix] = append(by.prefixes[prefix], i)
		}
	}
	seen, done := map[int]bool{}, map[*int]bool{}
	for _, d := range differences.Parts() {
		if d.elements != nil {
			continue
		}
		prefixes = appendPrefixes(prefixes[:0], d.path)
		set := by.near(d.path, prefixes)
		if len(set) == 0 || done[&set[0]] {
			continue
		}
		done[&set[0]] = true
		if set = slices.DeleteFunc(slices.Clone(set), func(i int) bool { return seen[i] }); len(set) == 0 {
			continue
		}
		for _, i := range set {
			seen[i] = true
		}
		sets = append(sets, set)
	}
	return sets
}

// Halves returns two parts of some changes, of which there are at least two. Changes of the
// same fields of different elements stay together if others can be parted from them: often
// either all or none of them show.
func (c Changes) Halves(some []int) [][]int {
	shapes := make(map[int]string, len(some))
	for _, i := range some {
		shapes[i] = c[i].shape()
	}
	some = slices.Clone(some)
	slices.SortStableFunc(some, func(i, j int) int { return cmp.Compare(shapes[i], shapes[j]) })
	half := len(some) / 2
	for from := range half { // the nearest place where one shape ends
		for _, at := range []int{half - from, half + from} {
			if at > 0 && at < len(some) && shapes[some[at-1]] != shapes[some[at]] {
				return [][]int{some[:at], some[at:]}
			}
		}
	}
	return [][]int{some[:half], some[half:]}
}

// shape returns the names in the path.
func (c *Change) shape() string {
	var names []byte
	for _, s := range c.path {
		names = append(append(names, s.name...), 0)
	}
	return string(names)
}

// index finds changes.
type index struct {
	changes  Changes
	prefixes map[uint64][]int            // by how their path begins
	tokens   map[uint64]map[string][]int // and by what is in the rest
}

// near returns the changes that have the longest way in common with a path. Of several, it
// returns those that also have a name or a key in common, the rarest one.
func (x *index) near(path []step, prefixes []uint64) []int {
	n := len(path)
	for n > 0 && x.prefixes[prefixes[n]] == nil {
		n--
	}
	all := x.prefixes[prefixes[n]]
	if len(all) < 2 || n == len(path) {
		return all
	}
	by := x.tokens[prefixes[n]]
	if by == nil {
		by = map[string][]int{}
		for _, i := range all {
			for _, token := range tokensOf(x.changes[i].path[n:]) {
				by[token] = append(by[token], i)
			}
		}
		x.tokens[prefixes[n]] = by
	}
	for _, token := range tokensOf(path[n:]) {
		if with := by[token]; with != nil && len(with) < len(all) {
			all = with
		}
	}
	return all
}

// appendPrefixes appends hashes of all beginnings of a path, from none of it to all.
func appendPrefixes(hashes []uint64, path []step) []uint64 {
	h := uint64(1)
	hashes = append(hashes, h)
	for _, s := range path {
		h = h*0x9e3779b97f4a7c15 + maphash.String(seed, s.name)
		h = h*0x9e3779b97f4a7c15 + maphash.String(seed, s.key)
		h = h*0x9e3779b97f4a7c15 + uint64(s.at)
		hashes = append(hashes, h)
	}
	return hashes
}

// tokensOf returns the names in a path, and the values of keys, each once.
func tokensOf(path []step) (tokens []string) {
	add := func(token string) {
		if !slices.Contains(tokens, token) {
			tokens = append(tokens, token)
		}
	}
	for _, s := range path {
		if s.name != "" {
			add(s.name)
		}
		if s.key != "" {
			n, _ := read([]byte(s.key))
			for _, kid := range n.kids {
				if kid.is('"') {
					add(string(unquote(kid.text)))
				} else {
					add(string(kid.text))
				}
			}
		}
	}
	return tokens
}

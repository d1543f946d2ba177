package lost

import "slices"

// Near returns which changes may cause differences that [Diff] has found between an
// object without them and one with them: those that are nearest to each, by their paths.
// Changes outside of active are not looked at. Each set is returned once.
func (c Changes) Near(active []int, differences Changes) (sets [][]int) {
	by := index{changes: c, prefixes: map[string][]int{}, tokens: map[string]map[string][]int{}}
	for _, i := range active {
		for n := range len(c[i].path) + 1 {
			prefix := prefixOf(c[i].path[:n])
			by.prefixes[prefix] = append(by.prefixes[prefix], i)
		}
	}
	seen, done := map[int]bool{}, map[*int]bool{}
	for _, d := range differences {
		set := by.near(d.path)
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

// index finds changes.
type index struct {
	changes  Changes
	prefixes map[string][]int            // by how their path begins
	tokens   map[string]map[string][]int // and by what is in the rest
}

// near returns the changes that have the longest way in common with a path. Of several, it
// returns those that also have a name or a key in common, the rarest one.
func (x *index) near(path []step) []int {
	n := len(path)
	for n > 0 && x.prefixes[prefixOf(path[:n])] == nil {
		n--
	}
	prefix := prefixOf(path[:n])
	all := x.prefixes[prefix]
	if len(all) < 2 || n == len(path) {
		return all
	}
	by := x.tokens[prefix]
	if by == nil {
		by = map[string][]int{}
		for _, i := range all {
			for _, token := range tokensOf(x.changes[i].path[n:]) {
				by[token] = append(by[token], i)
			}
		}
		x.tokens[prefix] = by
	}
	for _, token := range tokensOf(path[n:]) {
		if with := by[token]; with != nil && len(with) < len(all) {
			all = with
		}
	}
	return all
}

func prefixOf(path []step) string {
	var b []byte
	for _, s := range path {
		b = append(s.content().append(b), ',')
	}
	return string(b)
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
					add(unquote(kid.text))
				} else {
					add(string(kid.text))
				}
			}
		}
	}
	return tokens
}

package threeway

// Near returns which changes may cause differences that [Diff] has found between an
// object without them and one with them: those that are nearest to each, which are those
// that have the longest beginning of their path in common with it. Changes outside of
// active are not looked at. Each change is in one set at most.
func (c Changes) Near(active []int, differences Changes) (sets [][]int) {
	root := &beginning{}
	for _, i := range active {
		if c[i].elements == nil {
			root.add(c[i].path, i)
		}
	}
	seen := map[int]bool{}
	for _, d := range differences.Parts() {
		if d.elements != nil {
			continue
		}
		nearest := root
		for _, s := range d.path {
			if nearest.next[s] == nil {
				break
			}
			nearest = nearest.next[s]
		}
		var set []int
		for _, i := range nearest.changes {
			if !seen[i] {
				seen[i] = true
				set = append(set, i)
			}
		}
		nearest.changes = nil
		if len(set) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

// beginning is what the paths of some changes begin with.
type beginning struct {
	next    map[step]*beginning
	changes []int
}

func (b *beginning) add(path []step, change int) {
	b.changes = append(b.changes, change)
	if len(path) == 0 {
		return
	}
	if b.next == nil {
		b.next = map[step]*beginning{}
	}
	if b.next[path[0]] == nil {
		b.next[path[0]] = &beginning{}
	}
	b.next[path[0]].add(path[1:], change)
}

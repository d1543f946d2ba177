package merge

// Near returns, for differences that [Diff] has found between an object without the changes and one
// with them, the changes that may have caused them: those whose paths share the longest beginning
// with each difference. Only the changes in active count, and each is in at most one set.
func (c Changes) Near(active []int, differences Changes) (sets [][]int) {
	root := newBeginning()
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

func newBeginning() *beginning { return &beginning{next: map[step]*beginning{}} }

func (b *beginning) add(path []step, change int) {
	b.changes = append(b.changes, change)
	for _, s := range path {
		if b.next[s] == nil {
			b.next[s] = newBeginning()
		}
		b = b.next[s]
		b.changes = append(b.changes, change)
	}
}

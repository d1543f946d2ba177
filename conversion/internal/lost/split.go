package lost

// Split cuts two or more changes into two parts, between those whose paths have the
// least in common, and of these as near to the middle as can be: what is about one
// list element or one object stays together as long as possible. Diff has put the
// changes in the order of the document.
func (c Changes) Split() (Changes, Changes) {
	best, least := 1, maxPath+1
	for i := 1; i < len(c); i++ {
		in := common(c[i-1].path, c[i].path)
		if in < least || in == least && distance(i, len(c)-i) < distance(best, len(c)-best) {
			best, least = i, in
		}
	}
	return c[:best], c[best:]
}

// common returns how many steps two paths have in common.
func common(a, b []step) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func distance(a, b int) int { return max(a-b, b-a) }

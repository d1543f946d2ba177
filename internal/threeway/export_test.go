package threeway

const MaxPath = maxPath

func PathLength(c Change) int { return len(c.path) }

// Hash returns what a change remembers of a value.
func Hash(text []byte) string {
	n, err := read(text)
	if err != nil {
		panic(err)
	}
	return n.hash()
}

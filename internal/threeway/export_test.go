package threeway

const MaxPath = maxPath

// Helpers that the tests of patches and those of changes share.
type Failer = failer

var (
	Decode = decode
	Encode = encode
)

func PathLength(c Change) int { return len(c.path) }

// Hash returns what a change remembers of a value.
func Hash(text []byte) string {
	n, err := read(text)
	if err != nil {
		panic(err)
	}
	return n.hash()
}

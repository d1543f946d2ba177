package schema

import "fmt"

// Advices names the entries of the table of advices, and AdviceFor is the number of that
// which a problem has its advice from, or -1.
func Advices() (names []string) {
	for _, a := range advices {
		names = append(names, fmt.Sprintf("%q %q", a.path, a.message))
	}
	return names
}

func AdviceFor(p Problem) int { return adviceFor(p.Path, p.Message) }

package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Advices names the entries of the table of advices, and AdviceFor is the number of that
// which a problem has its advice from, or -1.
func Advices() (names []string) {
	for _, a := range advices {
		names = append(names, fmt.Sprintf("%d %q %q", a.rule, a.path, a.message))
	}
	return names
}

func AdviceFor(f Problem) int {
	path := adviseAt(f.Path)
	for i, a := range advices {
		if a.fits(path, f.Message, f.Rule) {
			return i
		}
	}
	return -1
}

// StructuralRules names the entries of the table of structural rules, and
// StructuralRuleFor is the number of the one that an error is about, or -1.
func StructuralRules() (names []string) {
	for _, r := range structuralRules {
		names = append(names, fmt.Sprint(r))
	}
	return names
}

func StructuralRuleFor(err *field.Error) int {
	for i, r := range structuralRules {
		if r.fits(err) {
			return i
		}
	}
	return -1
}

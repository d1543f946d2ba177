package library

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/docs/tutorial/library/api/v1"
)

// defaultShelf sets the shelf to the first letter of the title. A default in the schema cannot
// depend on another field.
func defaultShelf(_ context.Context, book *v1.Book) error {
	if book.Spec.Shelf == "" && book.Spec.Title != "" {
		book.Spec.Shelf = strings.ToUpper(string([]rune(book.Spec.Title)[:1]))
	}
	return nil
}

// checkISBN rejects an ISBN whose check digit is wrong. The sum of its digits, with every second one
// times three, is a multiple of ten.
func checkISBN(_ context.Context, book *v1.Book) (errs field.ErrorList, _ error) {
	sum := 0
	for i, digit := range book.Spec.ISBN {
		sum += int(digit-'0') * (1 + i%2*2)
	}
	if sum%10 != 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "isbn"), book.Spec.ISBN, "a digit is wrong"))
	}
	return errs, nil
}

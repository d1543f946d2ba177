package library

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/docs/tutorial/step7/api/v1"
)

// defaultShelf puts a book where the first letter of its title says, unless a user has
// put it elsewhere. A default in the schema cannot look at another field.
func defaultShelf(_ context.Context, book *v1.Book) error {
	if book.Spec.Shelf == "" && book.Spec.Title != "" {
		book.Spec.Shelf = strings.ToUpper(string([]rune(book.Spec.Title)[:1]))
	}
	return nil
}

// checkISBN refuses an ISBN with a mistyped digit: their sum, every second one three times,
// is a multiple of ten (ISO 2108). A pattern in the schema cannot add.
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

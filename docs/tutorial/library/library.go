package library

import (
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/webhook/registration"

	"github.com/crdkit/crdkit/docs/tutorial/library/api/v1"
	"github.com/crdkit/crdkit/docs/tutorial/library/api/v1alpha1"
)

// newScheme returns the kinds of the library's API.
func newScheme() (*runtime.Scheme, error) {
	return scheme.New(
		scheme.Version(v1.GroupVersion, &v1.Book{}, &v1.BookList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Book{}, &v1alpha1.BookList{}),
	)
}

// Webhooks declares the webhooks and their paths. The options tell where the API server finds them.
func Webhooks(where ...registration.Option) (*registration.Webhooks, error) {
	s, err := newScheme()
	if err != nil {
		return nil, err
	}
	reg, err := newRegistry(s)
	if err != nil {
		return nil, err
	}
	return registration.New("library", append([]registration.Option{
		registration.CRDs(definition),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.books.library.example.com", "/default",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(defaultShelf, admission.On(admissionv1.Create)))),
		registration.Validating("validate.books.library.example.com", "/validate",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(checkISBN, admission.IfChanged("spec.isbn")))),
	}, where...)...)
}

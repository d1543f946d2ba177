package library

import (
	"context"
	_ "embed" // for the definition
	"errors"
	"net"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"

	"github.com/crdkit/crdkit/docs/tutorial/step7/api/v1"
	"github.com/crdkit/crdkit/docs/tutorial/step7/api/v1alpha1"
)

// definition is what controller-gen has made of the types in api.
//
//go:embed config/crd/library.example.com_books.yaml
var definition []byte

// newScheme returns the kinds of the library.
func newScheme() (*runtime.Scheme, error) {
	return scheme.New(
		scheme.Version(v1.GroupVersion, &v1.Book{}, &v1.BookList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Book{}, &v1alpha1.BookList{}),
	)
}

// Webhooks says what the API server shall call, and where it finds it.
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
		registration.Definitions(definition),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.books.library.example.com", "/default",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(defaultShelf, admission.On(admissionv1.Create)))),
		registration.Validating("validate.books.library.example.com", "/validate",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(checkISBN, admission.IfChanged("spec.isbn")))),
	}, where...)...)
}

// Run serves the webhooks until the context ends, with certificates that it makes, and has
// the API server trust them. The listener is closed in any case.
func Run(ctx context.Context, config *rest.Config, listener net.Listener, where ...registration.Option) error {
	hooks, err := Webhooks(where...)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return replica.Run(ctx, config, listener, hooks)
}

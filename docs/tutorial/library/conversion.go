package library

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"

	"github.com/crdkit/crdkit/docs/tutorial/library/api/v1"
	"github.com/crdkit/crdkit/docs/tutorial/library/api/v1alpha1"
)

// newRegistry returns the conversions between the versions. v1 is the hub.
func newRegistry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, bookToHub, bookFromHub); err != nil {
		return nil, err
	}
	return reg, conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Book"), lossless.ListMapKeys(definition))
}

func bookToHub(_ context.Context, in *v1alpha1.Book, out *v1.Book) error {
	out.Spec = v1.BookSpec{Title: in.Spec.Title, ISBN: in.Spec.ISBN, Pages: in.Spec.Pages, Shelf: in.Spec.Shelf}
	if in.Spec.Authors != nil {
		out.Spec.Authors = []v1.Author{} // "authors: []" stays a list
	}
	for _, name := range in.Spec.Authors {
		out.Spec.Authors = append(out.Spec.Authors, v1.Author{Name: name})
	}
	return nil
}

func bookFromHub(_ context.Context, in *v1.Book, out *v1alpha1.Book) error {
	out.Spec = v1alpha1.BookSpec{Title: in.Spec.Title, ISBN: in.Spec.ISBN, Pages: in.Spec.Pages, Shelf: in.Spec.Shelf}
	if in.Spec.Authors != nil {
		out.Spec.Authors = []string{}
	}
	for _, author := range in.Spec.Authors {
		out.Spec.Authors = append(out.Spec.Authors, author.Name)
	}
	return nil
}

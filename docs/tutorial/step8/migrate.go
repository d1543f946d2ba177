package library

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// books is the name of the definition.
const books = "books.library.example.com"

// Migrate has the API server write all books that it has stored in v1.
func Migrate(ctx context.Context, config *rest.Config, opts ...migrate.Option) (*migrate.Report, error) {
	return migrate.Run(ctx, config, books, opts...)
}

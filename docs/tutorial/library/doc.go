// Package library is an operator for the books of a library.
package library

import _ "embed"

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

// definition is the CustomResourceDefinition that controller-gen generates from the types in api.
//
//go:embed config/crd/library.example.com_books.yaml
var definition []byte

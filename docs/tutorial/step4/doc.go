// Package library is an operator for the books of a library.
package library

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

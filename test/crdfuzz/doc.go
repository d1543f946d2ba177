// Package crdfuzz makes definitions of custom resources at random, and requests about them,
// right, nearly right and wrong: what package differential compares with a real API server.
//
// Everything is a function of a stream of draws (internal/choices). A definition is drawn without
// regard to what the API server accepts; then what it would refuse is removed. So most
// definitions can be served, and have unforeseen combinations of features.
package crdfuzz

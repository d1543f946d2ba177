// Package crdfuzz makes definitions of custom resources at random, and requests about them,
// right, nearly right and wrong: what package differential compares with a real API server.
//
// All is a function of a stream of draws (internal/draw). A definition is made without
// much care. [Mend] takes away what the API server refuses it for, and so most of what is
// made comes to be served, and has combinations of features in it that nobody thought of.
package crdfuzz

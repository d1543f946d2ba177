// Package draw makes random values of a stream of draws, and makes the stream smaller when a value is
// a counterexample. It knows nothing about the values: all that is made of draws shrinks, also by
// functions of other authors, and has the same guarantees as before.
package draw

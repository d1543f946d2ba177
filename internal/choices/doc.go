// Package choices makes random values from a stream of random choices, called draws, and makes the
// stream smaller when a value is a counterexample. It knows nothing about the values: everything that is
// made of draws shrinks, also by functions of other authors, and has the same guarantees as before.
package choices

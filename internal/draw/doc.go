// Package draw makes random values of a stream of draws, and makes the stream smaller when
// a value is a counterexample to something. It knows nothing about values: whatever is
// made of draws shrinks, also by functions that others have written, and what those
// functions promise of a value still holds of the smaller one.
package draw

// Package differential sends the same request to package schema and to a real API server,
// and compares all that comes back: the code, the reason, the message, every cause, every
// warning, and the object.
//
// A [Suite] is a definition, perhaps an earlier form of it, and requests. Suites are read
// from files ([ReadSuite]), or made at random by package wild. A [Tally] counts what comes
// of them: disagreements, which [Shrink] makes smaller, and, apart, the differences that
// come from the version of the server and are known.
package differential

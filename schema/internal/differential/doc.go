// Package differential sends the same request to package schema and to a real API server,
// and compares all that comes back: the code, the reason, the message, every cause, every
// warning, and the object.
//
// A [Server] holds one definition at a time; a [Suite] is a definition, perhaps an earlier
// form of it, and requests. Suites are read from files ([ReadSuite]), or made by a
// generator.
package differential

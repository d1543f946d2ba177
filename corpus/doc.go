// Package corpus runs the conversions of public projects through package roundtrip, with the
// definitions of their earlier releases as history. It has tests only:
//
//	make corpus
//
// The tests know each failure that the laws report. They fail if another one appears, or if a
// known one is no longer reported. A failure counts as a finding if a real kube-apiserver shows it
// to a client, with the definitions and the webhook of the project. docs/corpus.md counts the
// findings, and shows one.
//
// It also compares the Go validation of some projects with the CEL rules of their definitions, through package
// schema/equivalence.
//
// The Go module proxy serves all types and definitions. No file of the projects is copied.
package corpus

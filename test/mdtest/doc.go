// Package mdtest answers one question for tests: does a page of documentation show what the
// code does?
//
//	p := mdtest.Read(t, "troubleshooting.md")
//	p.GoIsIn(t, "../examples/pizza")        // each block of Go stands in a file there
//	for _, c := range p.Commands() { … }    // of blocks of ```console, with their output
//
// A page is Markdown: headings, and blocks between fences of three backquotes. That is all
// that the package reads of it, and it runs nothing: the Go code of a page is compiled where
// it stands, and a test runs the commands.
package mdtest

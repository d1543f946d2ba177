// Package show runs the steps of a walkthrough for a viewer or for a test. It runs kubectl and
// prints its output, runs processes next to a control plane, and reports whether each step passes
// or fails.
package show

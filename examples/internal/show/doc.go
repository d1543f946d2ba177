// Package show walks through an example for a viewer, or for a test: kubectl and
// what it prints, processes beside a control plane, and the steps, each of which passes or
// fails.
package show

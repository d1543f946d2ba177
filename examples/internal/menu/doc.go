// Package menu contains the steps of a walkthrough that are the same for both pizza examples, the
// operator with custom resources and the aggregated API server.
package menu

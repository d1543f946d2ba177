// Package crdmigrate is a command that moves stored objects to a new storage version, and
// takes old versions out of CustomResourceDefinitions. It is package conversion/migrate with
// a command line, progress and metrics.
//
//	go build -o bin/ ./examples/crdmigrate/cmd/crdmigrate
//
//	crdmigrate run pizzas.restaurant.example.com --dry-run  # what would be refused?
//	crdmigrate run pizzas.restaurant.example.com            # rewrite the stored objects
//	crdmigrate remove pizzas.restaurant.example.com v1alpha1
//	crdmigrate rules pizzas.restaurant.example.com          # the ClusterRole that it needs
//
// It may be killed at any time, and run again. Standard output has the results. Standard
// error shows the progress: as a bar on a terminal, and else as a line every ten
// seconds. With --metrics-bind-address it serves metrics for as long as it runs.
//
// The exit code is for scripts:
//
//   - 0: it is done.
//   - 1: objects could not be rewritten, or a version cannot be removed. Standard error says
//     which, why, and what to do.
//   - 2: the command line is wrong, or something went wrong on the way, such as an API server
//     that cannot be reached.
package crdmigrate

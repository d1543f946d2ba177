// Package crdmigrate implements a command that moves stored objects to a new storage version, and
// removes old versions from CustomResourceDefinitions. It adds a command line, progress and
// metrics to package conversion/migrate.
//
//	go build -o bin/ ./examples/crdmigrate/cmd/crdmigrate
//
//	crdmigrate run pizzas.restaurant.example.com --dry-run  # list objects that cannot be rewritten
//	crdmigrate run pizzas.restaurant.example.com            # rewrite the stored objects
//	crdmigrate remove pizzas.restaurant.example.com v1alpha1
//	crdmigrate rules pizzas.restaurant.example.com          # print the ClusterRole that it needs
//
// You may kill the command at any time and run it again. It prints results to standard output,
// and progress to standard error. On a terminal, the progress is a bar; otherwise, it is a line
// every ten seconds. With --metrics-bind-address, the command serves metrics while it runs.
//
// Scripts can use the exit code:
//
//   - 0: the command succeeded.
//   - 1: objects could not be rewritten, or a version cannot be removed. Standard error lists
//     the objects or managers, the reasons, and the fixes.
//   - 2: the command line is wrong, or another error occurred, such as an API server
//     that cannot be reached.
package crdmigrate

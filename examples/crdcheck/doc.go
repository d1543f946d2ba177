// Package crdcheck is a command that says, without a cluster, what an API server would
// make of CustomResourceDefinitions and of custom objects. It is built of crdkit's package
// schema alone.
//
//	go build -o bin/ ./examples/crdcheck/cmd/crdcheck
//
//	crdcheck lint config/crd                        # would the server take them?
//	crdcheck validate --crd config/crd pizza.yaml   # would it take this object?
//	crdcheck prune --crd config/crd pizza.yaml      # which fields would it drop?
//	crdcheck default --crd config/crd pizza.yaml    # which would it add?
//	crdcheck diff old.yaml new.yaml                 # what would an upgrade break?
//
// Files are YAML or JSON, with any number of documents and Lists. A directory stands for
// the files below it that end in .yaml, .yml or .json, and - for standard input. In
// a directory, what is of no concern is passed over: for lint and diff, what is no definition;
// for the others, what is no object of the definitions. In a file that is named, it is an
// error.
//
// The answer is on standard output, as text or, with -o json, as one JSON object; what
// went wrong is on standard error, where a terminal sees a line of progress too if it takes
// long. The exit code is for scripts:
//
//   - 0: nothing was found.
//   - 1: something was found: faults of a definition, an object that is invalid, fields that
//     are pruned, changes that break something.
//   - 2: the command line is wrong, or some of the input could not be read. What could be
//     read was checked even so.
//
// Read command.go for the command line, input.go for the files, and lint.go, object.go and
// diff.go for what it does.
package crdcheck

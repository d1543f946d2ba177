// Package crdcheck is a command that says, without a cluster, what an API server would
// make of CustomResourceDefinitions and of custom objects. It is built of crdkit's package
// schema alone.
//
//	go build -o bin/ ./examples/crdcheck/cmd/crdcheck
//
//	crdcheck lint config/crd                        # would the server take them?
//	crdcheck convert old.yaml                       # what is a v1beta1 definition in v1?
//	crdcheck validate --crd config/crd pizza.yaml   # would it take this object?
//	crdcheck prune --crd config/crd pizza.yaml      # which fields would it drop?
//	crdcheck default --crd config/crd pizza.yaml    # which would it add?
//	crdcheck diff old.yaml new.yaml                 # what would an upgrade break?
//
// Files are YAML or JSON, with any number of documents and Lists. A directory stands for
// the files below it that end in .yaml, .yml or .json, and - for standard input. In
// a directory, other objects are passed over. For lint, convert, diff and --crd these are all but
// definitions, and patches of definitions. For the others, they are those of another group than
// the definitions. Files there that cannot be read, such as templates, are passed over too,
// with a warning, if they do not seem to have such an object. In a file that is named,
// objects of other groups are passed over with a warning, and all else is an error. A kind
// or version that the definitions of its group do not have, or
// do not serve, is a finding everywhere: it may be misspelled.
//
// The answer is on standard output, as text or, with -o json, as one JSON object, which has
// the errors too; what went wrong is on standard error, where a terminal sees a line of
// progress too if it takes long. The exit code is for scripts:
//
//   - 0: nothing was found, or nothing but warnings.
//   - 1: something was found: faults of a definition, an object that is invalid, fields that
//     are pruned, changes that break something. A change that may break something, but of
//     which there is no proof, counts only with diff --unproven.
//   - 2: the command line is wrong, some of the input could not be read, there was nothing
//     to check, or the answer could not be written. Readable input was checked even so.
//
// Read command.go for the command line. Text goes from input.go, which reads files, to
// document.go and object.go, which take them apart; definition.go compiles definitions, and
// subject.go finds the objects that they concern. lint.go, convert.go, validate.go, rewrite.go (prune
// and default) and diff.go are the commands, and answer.go prints what validate, prune and default find.
package crdcheck

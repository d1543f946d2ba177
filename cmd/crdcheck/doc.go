// Package crdcheck implements a command that checks CustomResourceDefinitions (CRDs) and custom
// objects without a cluster. It reports the results that an API server would return. Of crdkit it
// uses only packages schema, schema/breaking and schema/rehearse.
//
//	go build -o bin/ ./examples/crdcheck/cmd/crdcheck
//
//	crdcheck lint config/crd                        # report the problems of CRDs
//	crdcheck convert old.yaml                       # convert CRDs from v1beta1 to v1
//	crdcheck validate --crd config/crd pizza.yaml   # validate objects
//	crdcheck prune --crd config/crd pizza.yaml      # report the fields that would be pruned
//	crdcheck default --crd config/crd pizza.yaml    # report the defaults that would be set
//	crdcheck diff old.yaml new.yaml                 # report what an upgrade of a CRD would break
//	crdcheck rehearse --from old --to new --objects snapshot.yaml # replay an upgrade with stored objects
//
// # Input
//
// Files contain YAML or JSON, with any number of documents and Lists. A directory stands for
// the files below it that end in .yaml, .yml or .json. The name - stands for standard input.
//
// In a directory, the command skips the objects that it does not need. For lint, convert, diff and
// --crd, these are objects that are not CRDs, and patches of CRDs. For validate, prune and default,
// these are objects of groups without a CRD. If a file in a directory cannot be read, such as a
// template, and does not seem to contain an object that the command needs, the command skips the
// file and prints a warning.
//
// In a file on the command line, objects of other groups are skipped with a warning. Everything else that
// is not expected is an error. If the group of an object has CRDs, but none of them serves its kind or
// version, the object is always a finding, because the kind or version may be misspelled. For
// rehearse, it is an error, and objects of other groups are counted.
//
// # Output
//
// The command prints its results to standard output, as text or, with -o json, as a JSON object that
// includes the errors. With -o github, lint, validate and diff print workflow commands of GitHub
// Actions. With -o sarif, they print a SARIF 2.1.0 log. Both formats have the line of the field.
// The command prints errors to standard error. On a terminal, standard error also shows
// the progress of a long run. Scripts can use the exit code:
//
//   - 0: there are no findings, or only warnings.
//   - 1: there are findings: problems of a CRD, invalid objects, pruned fields, breaking
//     changes, or data that an upgrade loses. A possibly breaking change without a proof counts too, unless diff has
//     --allow-unproven.
//   - 2: the command line is wrong, some input could not be read, there was nothing to check, or
//     the results could not be written. The command still checks all input that it can read.
//   - 3: the check could not be completed, for example because a webhook cannot be reached.
//
// # Files
//
// Read command.go for the command line. input.go reads files, and document.go and object.go parse
// them. definition.go compiles CRDs, and subject.go finds the objects that they specify. lint.go,
// convert.go, validate.go, rewrite.go (prune and default) and diff.go implement the commands, and
// answer.go prints the findings of validate, prune and default. report.go has the formats for
// code reviews. rehearse.go implements rehearse: stored.go reads files of any size, and webhook.go
// starts webhooks.
package main

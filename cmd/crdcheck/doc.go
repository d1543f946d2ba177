// Crdcheck checks CustomResourceDefinitions (CRDs) and custom objects without a cluster, and reports
// the results that an API server would return. Most projects run it in CI:
//
//	go install github.com/crdkit/crdkit/cmd/crdcheck@latest
//
//	crdcheck lint config/crd                        # report the problems of CRDs
//	crdcheck diff old.yaml new.yaml                 # report what an upgrade of a CRD would break
//	crdcheck rehearse --from old --to new --objects snapshot.yaml # replay an upgrade with stored objects
//	crdcheck validate --crd config/crd pizza.yaml   # validate objects
//	crdcheck prune --crd config/crd pizza.yaml      # report the fields that would be pruned
//	crdcheck default --crd config/crd pizza.yaml    # report the defaults that would be set
//	crdcheck convert old.yaml                       # convert CRDs from v1beta1 to v1
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
//   - 0: there are no findings, or only warnings and accepted findings.
//   - 1: there are findings: problems of a CRD, invalid objects, pruned fields, breaking
//     changes, or data that an upgrade loses. A possibly breaking change without a proof counts too, unless diff has
//     --allow-unproven.
//   - 2: the command line is wrong, some input could not be read, there was nothing to check, or
//     the results could not be written. The command still checks all input that it can read.
//   - 3: the check could not be completed, for example because a webhook cannot be reached.
//
// # Accepted findings
//
// A change of diff or a loss of rehearse that you have reviewed is accepted by an entry in a file, which
// you pass with --accept and keep in your repository:
//
//	# accepted.yaml
//	- definition: Pizza.restaurant.example.com
//	  version: v1
//	  path: spec.size
//	  what: the value "small" is removed
//	  reason: no pizza has been small since v0.3, whose webhook refuses it
//
// With -o accept, the command prints the entries of all findings that are not accepted yet; the reasons
// are yours to write, and an entry without one is an error. An entry accepts exactly the finding whose
// fields it repeats, so that another change of the same field is reported again. Accepted findings are
// printed with their reasons, in JSON as accepted, in SARIF as suppressions, and for GitHub as notices.
//
// An entry of diff is stale if the compared CRDs do not have its change, usually because the old CRD is now
// that of a release with the change. Diff reports stale entries, and fails because of them only with
// --fail-on-stale: a stale entry hides nothing, and a project that compares with its main branch has one after
// each merge. An entry that is misspelled is stale too, and the change that it was meant for still fails.
//
// # Stability
//
// Commands, flags, exit codes, the files of --accept and the formats json, github, sarif and accept
// change as crdkit's Go API does: a minor release of version 0 may change them, CHANGELOG.md lists each
// such change, and a patch release changes none. Formats may gain fields. The text for people may change in any release,
// and with it the wording of messages within a format. The exception is the field what of a change,
// which entries repeat. The cause of a rehearse finding quotes a webhook or the API server, and changes with them.
package main

// Crdcheck checks CustomResourceDefinitions (CRDs) and custom objects without a cluster, with the API
// server's own code. Most projects run it in CI:
//
//	go install github.com/crdkit/crdkit/cmd/crdcheck@latest
//
//	crdcheck lint config/crd                        # report the problems of CRDs
//	crdcheck diff old.yaml new.yaml                 # report what an upgrade of a CRD would break
//	crdcheck rehearse --from old --to new --objects snapshot.yaml # replay an upgrade with stored objects
//	crdcheck validate --crd config/crd pizza.yaml   # validate objects
//	crdcheck convert old.yaml                       # convert CRDs from apiextensions.k8s.io/v1beta1 to v1
//
// # Input
//
// Files contain YAML or JSON, with any number of documents and Lists. A directory stands for
// the files below it that end in .yaml, .yml or .json. The name - stands for standard input.
//
// Input that a command does not check is treated as follows. "Other" objects are those whose group has no
// CRD in the input:
//
//	input               lint, convert, diff, --crd    validate                      rehearse
//	a directory         skips what is not a CRD       skips other objects           skips other objects, warns
//	a file by its name  error if it has no CRD        skips other objects, warns    skips other objects, warns
//	wrong kind, version -                             a finding                     error
//	not YAML or JSON    error                         error                         error
//
// Standard input is like a file by its name. The third line is for objects whose group has a CRD that does not
// serve their kind or version, which may be misspelled; diff ignores such objects of --objects, which it otherwise
// treats as validate does. A file in a directory that is not YAML or JSON, such as a template, is an error
// only if it seems to contain an object that the command needs. Otherwise, the commands of the first column skip
// it, and validate skips it with a warning. For rehearse, it is always an error.
//
// The objects of rehearse are a snapshot, as kubectl get -o yaml prints it. With --webhook, rehearse calls
// the conversion webhook of the next release at a URL, and with --webhook-command it also starts it.
//
// # Output
//
// The command prints its results to standard output, as text or, with -o json, as a JSON object that
// includes the errors. With -o github, lint, validate and diff print workflow commands of GitHub
// Actions. With -o sarif, they print a SARIF 2.1.0 log. Both include the line of the field that a finding is about.
// The command prints errors to standard error. On a terminal, standard error also shows
// the progress of a long run. Scripts can use the exit code:
//
//   - 0: there are no findings, or only warnings and accepted findings.
//   - 1: there are findings: problems of a CRD, invalid objects, breaking
//     changes, or data that an upgrade loses. Diff also finds changes that may break something
//     without an example object that does; with --allow-unproven, these do not count.
//   - 2: the command line is wrong, some input could not be read, there was nothing to check, or
//     the results could not be written. The command still checks all input that it can read.
//   - 3: the check could not be completed, for example because a webhook cannot be reached.
//
// # Accepted findings
//
// To accept a change that diff reports, or a loss that rehearse reports, add an entry to a file in your
// repository, and pass the file with --accept:
//
//	# accepted.yaml
//	- definition: Pizza.restaurant.example.com # kind and group
//	  version: v1
//	  path: spec.size
//	  what: the value "small" is removed
//	  reason: no pizza has been small since v0.3, whose webhook refuses it
//
// With -o accept, the command prints the entries of all findings that are not accepted yet; the reasons
// are yours to write, and an entry without one is an error. An entry accepts exactly the finding whose
// fields it repeats, so that another change of the same field is reported again: "what" includes the new value, or
// its hash if the value is long. Accepted findings are
// printed with their reasons, in JSON as accepted, in SARIF as suppressions, and for GitHub as notices.
//
// An entry is stale if diff does not find its change, usually because the old CRD has the change already. Diff
// reports stale entries, but fails only with --fail-on-stale, because a stale entry hides nothing, and a project
// that compares with its main branch has one after each merge. A misspelled entry is stale too, and the change
// that it was meant for still fails. Entries of a CRD that is not compared may belong to another run, so diff only
// prints a note about them. With --fail-on-stale, they are stale: compare all CRDs of the file in one run.
//
// # Stability
//
// Commands, flags, exit codes, the files of --accept and the formats json, github, sarif and accept follow
// the same rules as crdkit's Go API: in version 0, a minor release may change them, CHANGELOG.md lists each
// such change, and a patch release changes none. Formats may gain fields. The wording of messages may change in any
// release, except for the field "what" of a change, which entries repeat. The cause of a rehearse finding quotes a
// webhook or the API server, and may change when they do.
package main

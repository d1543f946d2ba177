// Package schema answers one question: what does the API server do to a custom object?
// It is the server's pipeline for custom resources, in process: no server, no cluster, no
// files.
//
//	crd, err := schema.Parse(crdYAML)
//	out, err := crd.Version("v1").Create(ctx, object)
//
// The result is what the server would store and answer, with its warnings; the error is
// the one that kubectl would print, with the same causes. (Their order is the server's too,
// where it has one: fields of an object are checked in random order.) [Version.Update]
// and [Version.UpdateStatus] do what a PUT does, ratcheting and all, and [Version.Read]
// what a GET does. The single steps are [Version.Prune], [Version.Default] and
// [Version.Validate]. What else a version serves are [Version.Table], as kubectl get prints
// it, [Version.Scale], [Version.UpdateScale] and [Version.SelectableFields].
//
// Of the definitions themselves, [Check] says why the server would not take one, with the
// line in the file and how to mend it, and [BreakingChanges] what a new one would break,
// with an object that proves it.
//
// # Where the behaviour comes from
//
// Nearly all of it is the server's own code: structural schemas, pruning, defaulting, the
// schema's validation, list types, embedded metadata, CEL, and the validation of the
// definition itself are functions of k8s.io/apiextensions-apiserver, in the version that
// go.mod names. What is private to the server, such as the order of the steps, is written
// anew, and each function names the one that it follows. The tests send requests about
// each trap that is known to a real kube-apiserver too, in each mode of field validation,
// dry and for good, and random requests about random definitions, of which `make
// differential` sends more; and compare the code, every cause, every warning, the answer,
// and what is in etcd.
//
// A server of another minor version can differ in details. Those known between 1.36 and
// the 1.37 of these libraries: errors of ownerReferences and of managedFields have other
// paths and types, which can keep the rules from being run; 1.37 knows CEL functions
// (includes) that 1.36 does not, and estimates some costs lower; and 1.36 forgets the schema
// of the value of an optional oldSelf. All feature gates are as the server has them by
// default.
//
// # What surprises
//
//   - additionalProperties: true keeps a key, and prunes all below it.
//   - x-kubernetes-preserve-unknown-fields reaches into the items of lists, and ends at a
//     property that is specified.
//   - A null that is neither nullable nor with a default is removed from an object, but
//     stays in a list, and is a fault there.
//   - A default creates no parent. A read takes defaults from the stored version; those of
//     the version asked for are not there, until an update is sent in that version.
//   - An answer, to a dry run too, has been converted to the storage version and back: what
//     the schema of that version lacks is gone, and so are defaults that are only in the
//     version of the request.
//   - A status that is a subresource and has a default is not stored in a create, but is in
//     the answer: it is set again when the object is read back.
//   - What a mutating webhook adds is defaulted, but not pruned before it is stored: it is
//     there when the schema learns of it.
//   - 1.0 is an integer to the schema, but not to a CEL rule, which fails on it. An integer
//     is no multiple of 0.5.
//   - Errors of type, enum, required, format, and too many or too long keep the rules from
//     being run; those of pattern, minimum, oneOf and of lists that are sets do not.
//   - An update that leaves a faulty part alone is forgiven: errors of the schema are
//     dropped, and those of rules become warnings. Not so a rule that fails to evaluate,
//     embedded metadata, allOf and the like in a parent that changes. One list that was no
//     set before lets every list be none.
//   - A write to the status is not validated against the schema of the rest, but all rules
//     are run.
//
// # What it does not do
//
// Admission is not simulated but for [Mutate]; nor are quotas, the limits of etcd, garbage
// collection, server-side apply, patches, managedFields, and conversion by webhook: objects
// of another version are converted first, for example with package conversion. A rule at
// the root that compares the whole object with the old one compares managedFields too, and
// so finds more on the server than here.
//
// An object may have 3 MiB, as much as a request to the server; a definition too, and it
// may be nested 512 deep ([ParseAll]). CEL rules have the server's own cost limits, and end
// with the context. Some of the server's code takes quadratic time in the number of
// faults: 3 MiB of nothing but faults take minutes, there and here, and no context ends
// that.
//
// The package imports no etcd, and no informers or clientsets of client-go; but the
// validation of definitions brings in client-go's REST client, by way of
// k8s.io/apiserver/pkg/util/webhook.
package schema

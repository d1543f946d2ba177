// Package schema answers one question: what does the API server do to a custom object?
// It answers about single objects and single requests, as plain functions that take
// microseconds and need no server, cluster or files.
//
//	crd, err := schema.Parse(crdYAML)
//	out, err := crd.Version("v1").Create(ctx, object)
//
// The result has what the server would answer, what it would store, and its warnings. The
// error is the one that kubectl would print, with the same causes. (The server itself has no
// fixed order for errors of different fields.)
//
//   - [Version.Create], [Version.Update] and [Version.UpdateStatus] do what a POST or PUT
//     does. [Version.Read] does what a GET does. [Convert] stands in for a conversion webhook.
//   - [Version.Prune], [Version.Default], [Version.Validate] and [Version.ValidateUpdate]
//     are single steps.
//   - [Check] lists the problems of a definition, each with its line in the file and with
//     advice.
//   - [ParseSchema] takes an OpenAPI v3 schema without a definition: to prune, default and
//     validate with it.
//
// Objects go in and out of requests as JSON, or go in as YAML. The steps take and change
// objects as maps; [Result.Unstructured] makes one of a result.
//
// # Where the behaviour comes from
//
// Nearly all of it is the server's own code: functions of k8s.io/apiextensions-apiserver and
// k8s.io/apiserver, in the version that go.mod names. Functions that are
// private to the server, or would bring in the client of etcd, are rewritten here. Each names its source.
// The tests send the same requests to a real kube-apiserver, and compare the code, every cause,
// every warning, the answer, and what is in etcd. `make differential` sends more.
//
// The behaviour is that of Kubernetes 1.37, with all feature gates at their defaults.
// docs/compatibility.md lists what older servers do differently.
//
// # What surprises
//
//   - additionalProperties: true keeps a key, and prunes all below it.
//   - x-kubernetes-preserve-unknown-fields reaches into the items of lists, and ends at a
//     property that is specified.
//   - A null that is neither nullable nor with a default is removed from an object. In a
//     list it stays, and is a problem.
//   - A default creates no parent. A read takes defaults from the stored version. Those of
//     the version asked for are not there until an update is sent in that version.
//   - An answer has been converted to the storage version and back: what the schema of that
//     version lacks is gone, and so are defaults that only the version of the request has.
//   - A status that is a subresource and has a default is not stored by a create, but is in
//     the answer: it is set again when the object is read back.
//   - 1.0 is an integer to the schema, but not to a CEL rule, which fails on it. An integer
//     is not a multiple of 0.5.
//   - Errors of type, enum, required, format, and too many or too long keep the rules from
//     being run. Those of pattern, minimum, oneOf and of lists that are sets do not.
//   - An update may leave an invalid part as it is: errors of the schema are
//     dropped, and those of rules become warnings. This is not so for a rule that fails to
//     evaluate, for embedded metadata, and for allOf and the like in a parent that changes.
//     If one list was not a set before, no list needs to be one.
//   - A write to the status is not validated by the schema of the rest, but all rules are
//     run.
//
// # What it does not do
//
// It stores nothing and calls no admission webhooks: package offline is a whole server, with storage,
// lists, watches, patches, conversion and admission. A rule at the root that compares the
// whole object with the old one sees managedFields on a server, and not here.
//
// The server's limits of size (3 MiB) and of the cost of CEL rules hold, but not that of time: a
// server ends a write after 34 seconds. Some of its code takes quadratic time in the number of
// errors: 20,000 errors take the better part of a minute.
package schema

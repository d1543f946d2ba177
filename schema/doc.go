// Package schema processes custom objects as the API server does: it prunes, defaults and
// validates them, and compiles and checks CustomResourceDefinitions (CRDs). The functions need no
// server and no cluster, and most calls take microseconds.
//
//	crd, err := schema.Parse(crdYAML)
//	out, err := crd.Version("v1").Create(ctx, object)
//
// The [Result] has the object in the response, the stored object, and the warnings. The error is
// the error that kubectl would print, with the same causes. The server itself has no fixed order
// for errors of different fields.
//
//   - [Version.Create], [Version.Update] and [Version.UpdateStatus] return the result of a POST
//     or PUT request. [Version.Read] returns the result of a GET request.
//     [Convert] stands in for a conversion webhook.
//   - [Version.Prune], [Version.Default], [Version.Validate] and [Version.ValidateUpdate] are the
//     single steps of a request.
//   - [Check] returns the problems of a CRD, with their lines in the file and with advice.
//   - [ParseSchema] compiles an OpenAPI v3 schema without a CRD.
//
// Objects of requests are JSON or YAML, and results are JSON. The steps work on maps, and some of
// them change the maps. [Result.Unstructured] decodes a result into such a map.
//
// # Source of the behaviour
//
// Nearly all of the code is the server's own: functions of k8s.io/apiextensions-apiserver and
// k8s.io/apiserver, in the version in go.mod. Some functions are rewritten here, because the
// server does not export them, or because they need the client of etcd. Each of them cites its
// source. Tests send the same requests to a real kube-apiserver. They compare the status code,
// all causes and warnings, the response, and the object in etcd. The command `make differential`
// sends more requests.
//
// The behaviour is the behaviour of Kubernetes 1.37, with all feature gates at their defaults.
// docs/compatibility.md lists the differences of older servers.
//
// # Surprising behaviour
//
//   - additionalProperties: true preserves a key, but everything below the key is pruned.
//   - x-kubernetes-preserve-unknown-fields also applies to the items of a list. It does not apply
//     below a specified property.
//   - If a field is null, but is not nullable and has no default, the field is removed. In a list,
//     such a null is preserved, and is an error.
//   - A default creates no parent. A read sets the defaults of the stored version. The defaults
//     of the requested version are missing until the object is updated in that version.
//   - A response has been converted to the storage version and back. Fields that the schema of
//     the storage version lacks are dropped, including defaults of the requested version.
//   - If the status is a subresource and has a default, a create request does not store the
//     default. The response contains the default, because reading the object sets it again.
//   - The schema accepts 1.0 as an integer, but a CEL rule fails on it. An integer is not a
//     multiple of 0.5.
//   - Rules do not run after errors of type, enum, required, format, maxLength, maxItems and
//     maxProperties. They run after errors of pattern and minimum, of oneOf, and of lists that
//     are sets.
//   - An update may leave an invalid part unchanged (ratcheting). Errors of the schema are
//     dropped, and errors of rules become warnings. Exceptions are rules that fail to evaluate,
//     embedded metadata, and allOf and the like in a parent that changes. If a list was not a set
//     before, no list of the object needs to be a set.
//   - A write to the status is not validated against the schema of other fields, but all rules
//     run.
//
// # Limitations
//
// The package stores nothing and calls no admission webhooks. Package offline is a whole server with
// storage, lists, watches, patches, conversion and admission. If a rule at the root compares the
// whole object with the old object, it compares managedFields on a server, but not here.
//
// The server's limits of size (3 MiB) and of the cost of CEL rules apply. The time limit of the
// server, which is 34 seconds for a write, does not. Some of the server's code takes quadratic
// time in the number of errors: 20,000 errors take almost a minute.
package schema

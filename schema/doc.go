// Package schema processes custom objects as the API server does: it prunes, defaults and
// validates them, and compiles and checks CustomResourceDefinitions (CRDs). The functions need no
// server and no cluster, and most calls take microseconds.
//
//	crd, err := schema.Parse(crdYAML)
//	out, err := crd.Version("v1").Create(ctx, object)
//
// The [Result] has the object in the response, the stored object, and the warnings. The error is
// the one that kubectl would print, with the same causes; only the order of errors of different
// fields, which the server does not fix either, may differ.
//
//   - [Version.Create], [Version.Update] and [Version.UpdateStatus] return the result of a POST
//     or PUT request, and [Version.Read] that of a GET request. [Convert] stands in for a
//     conversion webhook.
//   - [Version.Prune], [Version.Default], [Version.Validate] and [Version.ValidateUpdate] are the
//     single steps of a request.
//   - [Check] returns the problems of a CRD, with their lines in the file and with advice.
//
// Objects of requests are JSON or YAML, and results are JSON. The single steps take maps, and some
// of them change the maps.
//
// # Source of the behaviour
//
// The behaviour is that of Kubernetes 1.37 with all feature gates at their defaults;
// docs/compatibility.md lists the differences of older servers. Nearly all of the code is the
// server's own, from k8s.io/apiextensions-apiserver and k8s.io/apiserver in the version in go.mod.
// A function that the server does not export, or that needs the client of etcd, is rewritten here
// and cites its source. Tests and `make differential` send the same requests to a real
// kube-apiserver, and compare the status code, all causes and warnings, the response, and the
// object in etcd.
//
// # Surprising behaviour
//
//   - additionalProperties: true preserves a key, but everything below the key is pruned.
//   - x-kubernetes-preserve-unknown-fields also applies to the items of a list, but not below a
//     specified property.
//   - A null in a field that is not nullable and has no default is removed; in a list, such a null
//     is preserved, and is an error.
//   - A default creates no parent. A read sets the defaults of the stored version, so the defaults
//     of the requested version are missing until the object is updated in that version.
//   - A response has been converted to the storage version and back, so it lacks the fields that
//     the schema of the storage version lacks, including defaults of the requested version.
//   - If the status is a subresource and has a default, a create request does not store the
//     default. The response contains it, because reading the object sets it again.
//   - The schema accepts 1.0 as an integer, but a CEL rule fails on it. An integer is not a
//     multiple of 0.5.
//   - Rules do not run after errors of type, enum, required, format, maxLength, maxItems and
//     maxProperties. They run after errors of pattern and minimum, of oneOf, and of lists that
//     are sets.
//   - An update may leave an invalid part unchanged (ratcheting): errors of the schema are dropped,
//     and errors of rules become warnings. This does not apply to rules that fail to evaluate, to
//     embedded metadata, or to allOf and the like in a parent that changes. If one list of type set
//     or map already held duplicates, the update may leave duplicates in any.
//   - A write to the status does not validate other fields against the schema, but runs all rules.
//
// # Limitations
//
// The package stores nothing and calls no admission webhooks; package apiservertest is a whole server. A
// root rule such as self == oldSelf sees managedFields on a server, but not here.
//
// The server's limits of size (3 MiB) and of the cost of CEL rules apply, but not its time limit,
// which is 34 seconds for a write. Some of the server's code takes quadratic time in the number of
// errors: 20,000 errors take almost a minute.
package schema

// Package crdkit is the front door of a library of Kubernetes extension
// primitives: what an operator's author needs to take a custom resource from
// v1alpha1 to v1 without losing a byte. It holds no code.
//
// Each package answers one question, works alone, and is made of plain functions
// and http.Handlers:
//
//   - [github.com/crdkit/crdkit/scheme]: which groups, versions and kinds exist?
//   - [github.com/crdkit/crdkit/conversion]: how does one version become another?
//   - [github.com/crdkit/crdkit/conversion/migrate]: how do stored objects move to a new
//     storage version?
//   - [github.com/crdkit/crdkit/conversion/migrate/metrics]: how far are they?
//   - [github.com/crdkit/crdkit/conversion/metrics]: what has the webhook done?
//   - [github.com/crdkit/crdkit/roundtrip]: does conversion lose nothing?
//   - [github.com/crdkit/crdkit/schema]: what does the API server do to a custom object,
//     offline?
//   - [github.com/crdkit/crdkit/schema/offline]: what does a client see, without a cluster?
//   - [github.com/crdkit/crdkit/schema/breaking]: what would a new definition break?
//   - [github.com/crdkit/crdkit/admission]: may this write pass, and with which
//     changes?
//   - [github.com/crdkit/crdkit/admission/validate]: may this field become that?
//   - [github.com/crdkit/crdkit/admission/metrics]: what has the webhook decided?
//   - [github.com/crdkit/crdkit/admission/reference]: do the objects that it names
//     exist?
//   - [github.com/crdkit/crdkit/webhook]: how do the handlers reach the API server?
//   - [github.com/crdkit/crdkit/webhook/registration]: what must the API server be told
//     about them, and how does it stay right?
//   - [github.com/crdkit/crdkit/webhook/authority]: with which certificates do they serve,
//     without a certificate manager?
//   - [github.com/crdkit/crdkit/webhook/replica]: in which order does a replica of an
//     operator start and stop?
//   - [github.com/crdkit/crdkit/webhook/metrics]: how long are the certificates valid?
//
// The whole, put together, is the pizza operator in
// [github.com/crdkit/crdkit/examples/pizza]. For a move from controller-runtime,
// see the nested module interop/controllerruntime.
package crdkit

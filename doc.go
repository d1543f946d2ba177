// Package crdkit is the root of a library of Kubernetes extension primitives. With its
// packages, an operator can change the versions of its custom resources, such as from
// v1alpha1 to v1, without losing data. Package crdkit itself contains no code.
//
// You can use each package on its own. The packages consist of plain functions and
// HTTP handlers:
//
//   - [github.com/crdkit/crdkit/scheme] builds and checks the scheme of an API.
//   - [github.com/crdkit/crdkit/scheme/resource] serves kinds from an aggregated API server.
//   - [github.com/crdkit/crdkit/conversion] converts objects between the versions of a kind.
//   - [github.com/crdkit/crdkit/conversion/migrate] moves stored objects to a new storage
//     version.
//   - [github.com/crdkit/crdkit/conversion/migrate/metrics] exports the progress of a
//     migration to Prometheus.
//   - [github.com/crdkit/crdkit/conversion/metrics] exports metrics of the conversion webhook.
//   - [github.com/crdkit/crdkit/roundtrip] tests that conversions lose no data.
//   - [github.com/crdkit/crdkit/schema] processes a custom object as the API server does,
//     offline.
//   - [github.com/crdkit/crdkit/schema/offline] runs the API server for custom resources in
//     a test process.
//   - [github.com/crdkit/crdkit/schema/breaking] finds the breaking changes of a new
//     CustomResourceDefinition.
//   - [github.com/crdkit/crdkit/schema/rehearse] replays stored objects through an upgrade and
//     a rollback.
//   - [github.com/crdkit/crdkit/admission] serves admission webhooks, which validate and
//     change objects.
//   - [github.com/crdkit/crdkit/admission/plugin] runs admission functions in an aggregated API
//     server.
//   - [github.com/crdkit/crdkit/admission/validate] validates changes of fields.
//   - [github.com/crdkit/crdkit/admission/metrics] exports metrics of the admission webhooks.
//   - [github.com/crdkit/crdkit/admission/reference] validates references to other objects.
//   - [github.com/crdkit/crdkit/webhook] serves the handlers over HTTPS.
//   - [github.com/crdkit/crdkit/webhook/registration] registers the webhooks with the API
//     server.
//   - [github.com/crdkit/crdkit/webhook/authority] issues serving certificates, without a
//     certificate manager.
//   - [github.com/crdkit/crdkit/webhook/replica] runs the webhooks, informers and
//     controllers of an operator's replica.
//   - [github.com/crdkit/crdkit/webhook/metrics] exports the expiry of certificates, and
//     differences of the registration.
//
// The pizza operator in [github.com/crdkit/crdkit/examples/pizza] puts most of them together.
// To migrate from controller-runtime, see the nested module interop/controllerruntime.
package crdkit

// Package crdkit is the root of a module that takes a custom resource API from v1alpha1 to v1
// without losing user data. Its packages serve and test the conversion and admission webhooks of a
// kubebuilder operator, as plain [net/http.Handler]s that mount on your manager. Each package works
// alone; package crdkit itself contains no code.
//
// Test the next release, before anything else changes:
//
//   - [github.com/crdkit/crdkit/roundtrip] tests that conversions lose no data.
//   - [github.com/crdkit/crdkit/schema] processes a custom object as the API server does.
//   - [github.com/crdkit/crdkit/schema/offline] runs the API server for custom resources in
//     a test process.
//   - [github.com/crdkit/crdkit/schema/breaking] finds the breaking changes of a new
//     CustomResourceDefinition.
//   - [github.com/crdkit/crdkit/schema/rehearse] replays stored objects through an upgrade and
//     a rollback.
//
// Serve webhooks:
//
//   - [github.com/crdkit/crdkit/conversion] converts objects between the versions of a kind.
//   - [github.com/crdkit/crdkit/admission] serves admission webhooks, which validate and
//     change objects.
//   - [github.com/crdkit/crdkit/admission/validate] validates changes of fields.
//   - [github.com/crdkit/crdkit/admission/reference] validates references to other objects.
//   - [github.com/crdkit/crdkit/webhook] serves the handlers over HTTPS.
//   - [github.com/crdkit/crdkit/webhook/registration] registers the webhooks with the API
//     server.
//   - [github.com/crdkit/crdkit/webhook/authority] issues serving certificates, without a
//     certificate manager.
//   - [github.com/crdkit/crdkit/webhook/replica] starts and stops the webhooks, informers and
//     controllers of a replica in the right order.
//   - The packages metrics below conversion, conversion/migrate, admission and webhook export
//     Prometheus metrics.
//
// Move stored objects:
//
//   - [github.com/crdkit/crdkit/conversion/migrate] rewrites them in a new storage version.
//
// Build a scheme or an aggregated API server:
//
//   - [github.com/crdkit/crdkit/scheme] builds and checks the scheme of an API.
//   - [github.com/crdkit/crdkit/scheme/resource] serves kinds from an aggregated API server.
//   - [github.com/crdkit/crdkit/admission/plugin] runs admission functions in an aggregated API
//     server.
//
// The pizza operator in [github.com/crdkit/crdkit/examples/pizza] uses most of these packages. The
// nested module interop/controllerruntime moves the webhooks of a controller-runtime operator.
package crdkit

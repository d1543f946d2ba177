// Package crdkit is the root of a module for Kubernetes operators whose custom resources have several
// API versions. Its packages test that converting between the versions loses no user data, and serve the
// conversion and admission webhooks, as plain [net/http.Handler]s that a controller-runtime manager can
// serve, too. Package crdkit itself contains no code.
//
// Begin with package roundtrip. If your types have the methods ConvertTo and ConvertFrom, the nested
// module interop/controllerruntime passes them to it, and to the handlers.
//
// Test a release:
//
//   - [github.com/crdkit/crdkit/roundtrip] tests that conversions lose no data.
//   - [github.com/crdkit/crdkit/schema] prunes, defaults and validates objects as the API server does.
//   - [github.com/crdkit/crdkit/schema/apiservertest] runs the API server's own code for custom
//     resources in a test process.
//   - [github.com/crdkit/crdkit/schema/breaking] finds the breaking changes of a new
//     CustomResourceDefinition.
//   - [github.com/crdkit/crdkit/schema/rehearse] replays stored objects through an upgrade and
//     a rollback.
//   - [github.com/crdkit/crdkit/schema/equivalence] tests whether webhooks, CEL rules and policies decide
//     alike.
//   - [github.com/crdkit/crdkit/cmd/crdcheck] is a command that uses breaking and rehearse in CI.
//
// Serve webhooks:
//
//   - [github.com/crdkit/crdkit/conversion] converts objects between the versions of a kind.
//   - [github.com/crdkit/crdkit/admission] serves admission webhooks, which validate and
//     change objects.
//   - [github.com/crdkit/crdkit/admission/reference] validates references to other objects.
//   - [github.com/crdkit/crdkit/webhook] serves the handlers over HTTPS.
//   - [github.com/crdkit/crdkit/webhook/registration] registers the webhooks with the API
//     server.
//   - [github.com/crdkit/crdkit/webhook/authority] issues serving certificates, without a
//     certificate manager.
//   - [github.com/crdkit/crdkit/webhook/replica] starts and stops the webhooks, informers and
//     controllers of a replica in the right order.
//   - The metrics subpackages of conversion, conversion/migrate, admission and webhook export
//     Prometheus metrics.
//
// Move stored objects, or leave:
//
//   - [github.com/crdkit/crdkit/conversion/migrate] rewrites stored objects in a new storage version.
//   - [github.com/crdkit/crdkit/conversion/lossless] lets an operator stop using package conversion
//     without losing fields.
//
// Build a scheme or an aggregated API server:
//
//   - [github.com/crdkit/crdkit/scheme] builds and checks the scheme of an API.
//   - [github.com/crdkit/crdkit/scheme/resource] serves the kinds of CRDs from an
//     aggregated API server.
//   - [github.com/crdkit/crdkit/admission/plugin] runs admission functions in an aggregated API
//     server.
//
// The pizza operator in [github.com/crdkit/crdkit/examples/pizza] uses most of these packages.
package crdkit

// Package at is an operator that runs shell commands in a cluster, each once at a given time. It
// has one kind, At, in one version, and no webhook. Of crdkit it imports only package
// scheme, and package schema in its tests. All other code uses client-go.
//
// Read api/v1alpha1/at_types.go for the kind and the rules that the API server enforces,
// controller.go for the controller, which creates a Pod for each At, pod.go for the Pod, and
// README.md for a walkthrough with kubectl. The program is in cmd/at.
//
//	err := at.Run(ctx, config) // until the context ends
//
// # Limitations
//
// The operator does not repeat commands; use a CronJob for that. It neither stores the output of
// a command nor reports whether the command failed. The Pod contains both.
package at

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

// Package at is an operator that runs shell commands in a cluster, each once at a given time. It
// has one kind, At, in one version, and no webhook. It uses client-go, and of crdkit only package
// scheme, and package schema in its tests.
//
// Read api/v1alpha1/at_types.go for the kind and the rules that the API server enforces,
// controller.go for the controller, which creates a Pod for each At, pod.go for the Pod, and
// README.md for a walkthrough with kubectl. The program is in cmd/at.
//
//	err := at.Run(ctx, config) // until the context ends
//
// # Limitations
//
// The operator does not repeat commands; use a CronJob for that. The Pod, and not the At, has the
// output of the command and reports whether it failed.
package at

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

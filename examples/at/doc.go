// Package at runs shell commands in a cluster, each once and at its time. It is an operator of
// one kind, At, in one version, and without a webhook. So of crdkit it imports only package
// scheme, and package schema in its tests; the rest is client-go.
//
// Read api/v1alpha1/at_types.go for the kind and the rules that the API server enforces,
// controller.go for how an At becomes a Pod, pod.go for the Pod, and README.md for what it
// looks like with kubectl. The program is in cmd/at.
//
//	err := at.Run(ctx, config) // until the context ends
//
// # What it does not do
//
// It repeats nothing: a CronJob does that. It neither keeps what a command prints, nor
// reports whether it failed; the Pod does both.
package at

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

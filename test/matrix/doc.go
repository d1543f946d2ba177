// Package matrix runs the tests that need a control plane against several releases of
// Kubernetes, and counts them. It is what `make test-matrix` does:
//
//	tests, err := matrix.Needing(ctx, modules)
//	release, err := matrix.Open(ctx, "hack/controlplane/1.33")
//	count, err := release.Test(ctx, tests, log)
//
// No list says which tests these are. controlplane.ForTest gives a test an attribute, and
// says by it that there is no control plane to start, or which one it has started.
// [Needing] runs all tests of the packages whose test binaries have package controlplane in
// them, without any binaries, and finds those that are skipped for that. [Release.Test]
// runs these alone, and sees to it that each control plane is of the release.
//
// It does not build the control planes: make does.
package matrix

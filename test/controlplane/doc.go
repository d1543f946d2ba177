// Package controlplane starts and stops a real etcd and kube-apiserver, for
// tests and demos.
//
//	cp := controlplane.ForTest(t)
//	client, err := kubernetes.NewForConfig(cp.Config())
//
// The binaries are those of the folder that KUBEBUILDER_ASSETS names, as with
// controller-runtime's envtest, or else those that `make controlplane` builds
// into hack/controlplane/bin. They are of Kubernetes 1.27 or later.
//
// The API server runs with its defaults: RBAC is on, clients show certificates,
// and all admission plugins but ServiceAccount are as in production. There is no
// controller manager, scheduler or kubelet: deleted namespaces stay Terminating,
// Pods stay Pending, nothing is garbage collected, and the aggregated roles
// admin, edit and view grant nothing.
//
// Everything a control plane writes is in one temporary directory. That
// directory and both processes go away on Stop, and also when the program that
// called Start panics, exits or is killed. It needs a Unix with /bin/sh.
package controlplane

// Package walkthrough walks through the restaurant as an aggregated API server: with a
// real kube-apiserver before it, an etcd of its own behind it, and kubectl. The demo shows
// the steps, and the end-to-end test runs the same.
package walkthrough

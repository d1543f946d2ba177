// Package walkthrough demonstrates the restaurant as an aggregated API server, with a real
// kube-apiserver, an etcd for the aggregated server, and kubectl. The demo and the end-to-end
// test run the same steps.
package walkthrough

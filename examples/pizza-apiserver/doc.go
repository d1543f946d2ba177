// Package apiserver implements the pizza restaurant as an aggregated API server. It serves the API of
// package [github.com/crdkit/crdkit/examples/pizza] without applying its CustomResourceDefinitions and
// without webhooks: scheme.go makes resources of the definitions, and server.go runs the functions of
// the webhooks as admission plug-ins. The program is in cmd/pizza-apiserver.
package apiserver

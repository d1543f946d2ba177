// Package apiserver implements the pizza restaurant as an aggregated API server. It serves the
// API of package [github.com/crdkit/crdkit/examples/pizza] without CustomResourceDefinitions and
// webhooks. The Go types, conversions, admission functions and schemas are those of package pizza.
//
// Read these files:
//
//   - scheme.go for the registration of the conversions in the codecs;
//   - resources.go for the resources, with the columns of kubectl get;
//   - validation.go for validation, which a custom resource leaves to its schema;
//   - admission.go for the webhooks of package pizza as admission plug-ins;
//   - server.go for the server.
//
// The program is in cmd/pizza-apiserver.
package apiserver

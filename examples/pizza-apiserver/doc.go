// Package apiserver implements the pizza restaurant as an aggregated API server. It serves the
// API of package [github.com/crdkit/crdkit/examples/pizza] with its own Go code instead of
// CustomResourceDefinitions and webhooks.
//
// Read these files:
//
//   - scheme.go for the kinds, and the registration of the conversion functions in the codecs;
//   - conversion.go for the conversion of the versions through the internal hub of package
//     restaurant;
//   - defaults.go and validation.go for defaulting and validation;
//   - admission.go for the checks against other objects;
//   - resources.go for the resources, with the columns of kubectl get;
//   - server.go for the server.
//
// The program is in cmd/pizza-apiserver.
//
// The conversion functions have the same form as for a webhook (package conversion), so package
// roundtrip tests them too.
package apiserver

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object paths=./restaurant
//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen crd:allowDangerousTypes=true paths=../pizza/api/... output:crd:dir=config/schemas

// Package apiserver is the pizza restaurant as an aggregated API server: the same API as
// that of package [github.com/crdkit/crdkit/examples/pizza], but served by Go code of its
// own instead of CustomResourceDefinitions and webhooks.
//
// Read scheme.go for the kinds, conversion.go for how the versions convert through the
// internal hub of package restaurant, defaults.go and validation.go for the decoding of
// an object, admission.go for what is checked against other objects,
// strategy.go and storage.go for how objects are written to etcd, table.go for what
// kubectl get shows, openapi.go for the schema, and server.go for how all of it becomes a
// server. The program is in cmd/pizza-apiserver.
//
// Conversions are written as for a webhook (package conversion) and run in the server's
// codecs; register.go connects the two. So package roundtrip proves them, too.
package apiserver

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object paths=./restaurant
//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen crd:allowDangerousTypes=true paths=../pizza/api/... output:crd:dir=config/schemas

// Package pizza is a whole operator built from crdkit's parts: the pizza
// restaurant, whose API has two versions.
//
// Read scheme.go for the kinds, conversion.go for how the versions convert,
// admission.go for what is defaulted and checked, registration.go for what of this the
// API server shall call, controller.go for the controller, leader.go for the one replica
// whose controller works, and operator.go for how it all runs in one process, which
// makes the certificates of its webhooks. How it runs in a cluster is in
// deploy.go, config/rbac and config/deploy. The program is in cmd/pizza-operator.
package pizza

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd

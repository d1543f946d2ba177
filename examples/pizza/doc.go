// Package pizza is a complete operator that uses crdkit: the pizza restaurant, whose API has two
// versions.
//
// Read these files:
//
//   - scheme.go for the kinds;
//   - conversion.go for the conversion between the versions;
//   - admission.go for the defaults and the validation, and menu.go for the handlers that have them;
//   - registration.go for the handlers that the API server calls;
//   - controller.go for the controller, and leader.go for leader election;
//   - operator.go for the process that runs all parts and creates the certificates of
//     its webhooks;
//   - deploy.go, config/rbac and config/deploy for running it in a cluster.
//
// The program is in cmd/pizza-operator.
package pizza

//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd

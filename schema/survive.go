package schema

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// errPanic is the error of a definition at which the server's own validation
// panics: a rule with a fieldPath does that in a schema that cannot be read as structural.
// The server breaks off the connection.
var errPanic = errors.New("the server's validation panics")

// survive makes an error of a panic.
func survive(crd *apiextensionsv1.CustomResourceDefinition, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("schema: CustomResourceDefinition %s: %w: %v", crd.Name, errPanic, p)
	}
}

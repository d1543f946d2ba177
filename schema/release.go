package schema

import "net/http"

// Release is what one release of an operator registers in a cluster. The packages that compare two releases take it:
// [github.com/crdkit/crdkit/schema/breaking], [github.com/crdkit/crdkit/schema/equivalence] and
// [github.com/crdkit/crdkit/schema/rehearse].
type Release struct {
	Definitions []*Definition
	// Handler answers the requests to all webhooks, of conversion and of admission, at the paths that the definitions
	// and the webhook configurations have.
	Handler http.Handler
	// Manifests has the webhook configurations, the admission policies with their bindings and parameters, and other
	// objects that these need, such as namespaces: YAML or JSON documents by the name of their file. Package equivalence
	// adds the definitions among them to Definitions.
	Manifests map[string][]byte
}

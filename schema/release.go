package schema

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Release is what one release of an operator registers in a cluster. The packages that compare two releases take it:
// [github.com/crdkit/crdkit/schema/breaking], [github.com/crdkit/crdkit/schema/equivalence] and
// [github.com/crdkit/crdkit/schema/rehearse].
type Release struct {
	// Definitions are those of the CRDs: see [ParseAll]. Packages breaking and rehearse, which do not read Manifests,
	// return an error if there are none.
	Definitions []*Definition
	// Handler answers the requests to all webhooks, of conversion and of admission, at the paths that the definitions
	// and the webhook configurations have.
	Handler http.Handler
	// Manifests has the webhook configurations, the admission policies with their bindings and parameters, and other
	// objects that these need, such as namespaces: YAML or JSON documents by the name of their file. Package equivalence
	// adds the definitions among them to Definitions.
	Manifests map[string][]byte
}

// ByKind returns the Definitions by their kinds. It returns an error if there are none, and one that names each kind that is
// defined twice.
func (r Release) ByKind() (map[schema.GroupKind]*Definition, error) {
	all := map[schema.GroupKind]*Definition{}
	var errs []error
	for _, d := range r.Definitions {
		if all[d.GroupKind()] != nil {
			errs = append(errs, fmt.Errorf("%s is defined twice", d.GroupKind()))
		}
		all[d.GroupKind()] = d
	}
	if len(all) == 0 {
		return nil, errors.New("no Definitions, expected those of schema.ParseAll")
	}
	return all, errors.Join(errs...)
}

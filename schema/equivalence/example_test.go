package equivalence_test

import (
	"context"
	"fmt"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
)

const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: apples.example.com}, spec: {
group: example.com, scope: Cluster, names: {kind: Apple, plural: apples}, versions: [{name: v1, served: true, storage: true,
schema: {openAPIV3Schema: {type: object, required: [size], properties: {size: {type: integer, minimum: 0, maximum: %s}}}}}]}}`

// The second release has a lower maximum.
func ExampleCompare() {
	release := func(maximum string) schema.Release {
		return schema.Release{Manifests: map[string][]byte{"crd.yaml": fmt.Appendf(nil, crd, maximum)}}
	}
	report, err := equivalence.Compare(context.Background(), release("100"), release("99"), equivalence.Requests(200))
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Differences[0])
	// Output:
	// create example.com/v1 Apple
	//   object: {"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"x"},"size":100}
	//   before: allowed
	//   after:  denied: Apple.example.com "x" is invalid: size: Invalid value: 100: size in body should be less than or equal to 99
}

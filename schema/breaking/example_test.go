package breaking_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/breaking"
)

const cronTabs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [schedule]
            properties:
              schedule: {type: string, maxLength: 20}
              replicas: {type: integer, default: 1, minimum: 0}
    additionalPrinterColumns:
    - {name: Schedule, type: string, jsonPath: .spec.schedule}
`

// An object proves each break for objects. A printer column needs no proof.
func Example() {
	before, err := schema.ParseAll([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	upgraded := strings.NewReplacer("maxLength: 20", "maxLength: 10", "default: 1,", "default: 2,", "name: Schedule", "name: When").Replace(cronTabs)
	after, err := schema.ParseAll([]byte(upgraded))
	if err != nil {
		panic(err)
	}
	changes, err := breaking.Changes(context.Background(), schema.Release{Definitions: before}, schema.Release{Definitions: after})
	if err != nil {
		panic(err)
	}
	for _, c := range changes {
		fmt.Println(c.Effect, c)
		if c.Proof != nil {
			fmt.Println(string(c.Proof.Object))
			fmt.Println(c.Proof.Errors, c.Proof.Altered)
		}
	}
	// Output:
	// clients CronTab.stable.example.com v1 additionalPrinterColumns[Schedule]: the column is removed: clients that read it from a table do not find it
	// altered CronTab.stable.example.com v1 spec.replicas: the default 1 is now 2: objects without the field get another value than before
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"schedule":""}}
	// [] [spec.replicas: 2, was 1]
	// refused CronTab.stable.example.com v1 spec.schedule: maxLength 20 is now 10: new and changed values beyond it are refused
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"schedule":"aaaaaaaaaaa"}}
	// [spec.schedule: Too long: may not be more than 10 bytes] []
}

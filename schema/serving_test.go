package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema"
)

const deployments = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: fleets, kind: Fleet}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}
    additionalPrinterColumns:
    - {name: Replicas, type: integer, jsonPath: .spec.replicas, description: how many}
    - {name: Share, type: number, jsonPath: .spec.share}
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: All, type: string, jsonPath: '.spec.list[*]', priority: 1}
    - {name: Object, type: string, jsonPath: .spec}
    - {name: Ready, type: boolean, jsonPath: .status.ready}
    - {name: Since, type: date, format: date-time, jsonPath: .status.since}
    - {name: First, type: string, jsonPath: '.spec.list[0]'}
    - {name: Label, type: string, jsonPath: '.metadata.labels.a\.b/c'}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties: {replicas: {type: integer, maximum: 5}, colour: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func fleets(t testing.TB) *schema.Definition {
	t.Helper()
	d, err := schema.Parse([]byte(deployments))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTable_WithoutColumns(t *testing.T) {
	table := fleets(t).Version("v1beta1").Table(object(t, `{"kind":"Fleet","apiVersion":"example.com/v1beta1","metadata":{"name":"x"}}`))
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Age"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"x", nil}, table.Rows[0].Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A table is what kubectl get prints.
func ExampleVersion_Table() {
	crd, err := schema.Parse([]byte(strings.Replace(cronTabs, "    schema:", `    additionalPrinterColumns:
    - {name: Schedule, type: string, jsonPath: .spec.schedule}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:`, 1)))
	if err != nil {
		panic(err)
	}
	table := crd.Version("v1").Table(map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "nightly"},
		"spec": map[string]any{"schedule": "0 3 * * *", "replicas": int64(1)},
	})
	for _, column := range table.ColumnDefinitions {
		fmt.Print(column.Name, " ")
	}
	fmt.Println(table.Rows[0].Cells)
	// Output:
	// Name Schedule Replicas [nightly 0 3 * * * 1]
}

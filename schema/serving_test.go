package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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
    selectableFields: [{jsonPath: .spec.colour}, {jsonPath: .spec.replicas}]
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

func TestATableIsWhatTheServerMakes(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(deployments), crd); err != nil {
		t.Fatal(err)
	}
	converter, err := tableconvertor.New(crd.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`"metadata":{}`,
		`"metadata":{"name":"x","labels":{"a.b/c":"d"}},"spec":{"replicas":3,"share":0.5,"colour":"red","list":[1,"a",null,{"b":[]}]},"status":{"ready":true,"since":"2020-01-01T00:00:00Z"}`,
		`"metadata":{"name":"x"},"spec":{"replicas":3.7,"share":2,"colour":7,"list":[]},"status":{"ready":"yes","since":"yesterday"}`,
		`"metadata":{"name":"x"},"spec":{"replicas":"3","share":null,"colour":null,"list":"a"},"status":{"since":7}`,
		`"metadata":{"name":"x"},"spec":"none","status":[]`,
	} {
		o := object(t, `{"kind":"Fleet","apiVersion":"example.com/v1",`+text+`}`)
		want, err := converter.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: o}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := fleets(t).Version("v1").Table(o)
		if diff := cmp.Diff(want.ColumnDefinitions, got.ColumnDefinitions); diff != "" {
			t.Errorf("(-server +offline):\n%s", diff)
		}
		if diff := cmp.Diff(want.Rows, got.Rows); diff != "" {
			t.Errorf("%s (-server +offline):\n%s", text, diff)
		}
	}
}

func TestSelectableFieldsAreWhatASelectorCanAskFor(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`"metadata":{"name":"x","namespace":"n"},"spec":{"colour":"red","replicas":3}`: {"metadata.name": "x", "metadata.namespace": "n", "spec.colour": "red", "spec.replicas": "3"},
		`"metadata":{"name":"x","namespace":"n"}`:                                      {"metadata.name": "x", "metadata.namespace": "n", "spec.colour": "", "spec.replicas": ""},
		`"metadata":{"name":"x","namespace":"n"},"spec":{"colour":null}`:               {"metadata.name": "x", "metadata.namespace": "n", "spec.colour": "", "spec.replicas": ""},
	} {
		got, err := fleets(t).Version("v1").SelectableFields(object(t, `{"kind":"Fleet","apiVersion":"example.com/v1",`+text+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if _, err := fleets(t).Version("v9").SelectableFields(nil); err == nil {
		t.Error("there is no v9")
	}
}

const fleet = `{"apiVersion":"example.com/v1","kind":"Fleet","metadata":{"name":"x","namespace":"n","generation":1,"resourceVersion":"7"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`

func TestScaleReadsWhatItsPathsSay(t *testing.T) {
	v := fleets(t).Version("v1")
	got, err := v.Scale(t.Context(), []byte(fleet))
	if err != nil {
		t.Fatal(err)
	}
	want := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}, Status: autoscalingv1.ScaleStatus{Replicas: 2, Selector: "a=b"}}
	want.APIVersion, want.Kind, want.Name, want.Namespace, want.ResourceVersion = "autoscaling/v1", "Scale", "x", "n", "7"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := v.Scale(t.Context(), []byte(strings.Replace(fleet, `"replicas":3`, "", 1))); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `the spec replicas field ".spec.replicas" does not exist`) {
		t.Errorf("got %v", err)
	}
	if _, err := v.Scale(t.Context(), []byte(strings.Replace(fleet, `"a=b"`, "1", 1))); err == nil {
		t.Error("a selector is a string")
	}
	if _, err := fleets(t).Version("v1beta1").Scale(t.Context(), []byte(fleet)); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestUpdateScaleSetsTheReplicasAndNothingElse(t *testing.T) {
	v := fleets(t).Version("v1")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}, Status: autoscalingv1.ScaleStatus{Replicas: 9}}
	scale.Name = "x"
	out, err := v.UpdateScale(t.Context(), scale, []byte(fleet))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"replicas":3`, `"replicas":4`, `"generation":1,"resourceVersion":"7"`, `"generation":2`).Replace(fleet)
	if diff := cmp.Diff(valueOf(t, []byte(want)), valueOf(t, out.Stored)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	scale.Spec.Replicas = 6
	if _, err := v.UpdateScale(t.Context(), scale, []byte(fleet)); !apierrors.IsInvalid(err) {
		t.Errorf("the schema has a maximum of 5: got %v", err)
	}
	scale.Spec.Replicas, scale.ResourceVersion = 4, "6"
	if _, err := v.UpdateScale(t.Context(), scale, []byte(fleet)); !apierrors.IsConflict(err) {
		t.Errorf("it is version 7: got %v", err)
	}
	if _, err := fleets(t).Version("v1beta1").UpdateScale(t.Context(), scale, []byte(fleet)); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
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

// A field selector asks for these.
func ExampleVersion_SelectableFields() {
	crd, err := schema.Parse([]byte(strings.Replace(cronTabs, "    schema:", "    selectableFields: [{jsonPath: .spec.schedule}]\n    schema:", 1)))
	if err != nil {
		panic(err)
	}
	fmt.Println(crd.Version("v1").SelectableFields(map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "nightly", "namespace": "ops"},
		"spec": map[string]any{"schedule": "0 3 * * *"},
	}))
	// Output:
	// map[metadata.name:nightly metadata.namespace:ops spec.schedule:0 3 * * *] <nil>
}

// kubectl scale and autoscalers read a Scale, and write one.
func ExampleVersion_UpdateScale() {
	crd, err := schema.Parse([]byte(strings.Replace(cronTabs, "    schema:", "    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}\n    schema:", 1)))
	if err != nil {
		panic(err)
	}
	v, ctx := crd.Version("v1"), context.Background()
	stored := []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly","namespace":"ops"},"spec":{"schedule":"0 3 * * *","replicas":1}}`)
	scale, err := v.Scale(ctx, stored)
	if err != nil {
		panic(err)
	}
	fmt.Println(scale.Spec.Replicas)
	scale.Spec.Replicas = 2
	out, err := v.UpdateScale(ctx, scale, stored)
	fmt.Println(string(out.Stored), err)
	// Output:
	// 1
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"generation":2,"name":"nightly","namespace":"ops"},"spec":{"replicas":2,"schedule":"0 3 * * *"}} <nil>
}

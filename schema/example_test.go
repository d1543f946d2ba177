package schema_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/schema"
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
              image:
                type: string
                maxLength: 50
                x-kubernetes-validations:
                - rule: self.contains(':')
                  message: an image needs a tag
`

// The object changes as on a server.
func Example() {
	crd, err := schema.Parse([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	out, err := crd.Version("v1").Create(context.Background(), []byte(`
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: nightly
spec:
  schedule: "0 3 * * *"
  repliacs: 3
`))
	fmt.Println(string(out.Object), err)
	fmt.Println(out.Warnings)
	// Output:
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"generation":1,"name":"nightly","namespace":"default"},"spec":{"replicas":1,"schedule":"0 3 * * *"}} <nil>
	// [unknown field "spec.repliacs"]
}

// kubectl asks for strict field validation.
func ExampleFieldValidation() {
	crd, err := schema.Parse([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	_, err = crd.Version("v1").Create(context.Background(), []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},
		"spec":{"schedule":"0 3 * * *","repliacs":3}}`), schema.FieldValidation(metav1.FieldValidationStrict))
	fmt.Println(err)
	// Output:
	// CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: unknown field "spec.repliacs"
}

// An update forgives, and warns of, problems that were there before the rule was.
func ExampleVersion_Update() {
	crd, err := schema.Parse([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	const old = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly","namespace":"default","generation":1},
		"spec":{"schedule":"0 3 * * *","image":"backup","replicas":1}}`
	for _, spec := range []string{
		`{"schedule":"0 4 * * *","image":"backup"}`,
		`{"schedule":"0 4 * * *","image":"restore"}`,
	} {
		out, err := crd.Version("v1").Update(context.Background(),
			[]byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},"spec":`+spec+`}`), []byte(old))
		fmt.Println(string(out.Object))
		fmt.Println(out.Warnings)
		fmt.Println(err)
	}
	// Output:
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"generation":2,"name":"nightly","namespace":"default"},"spec":{"image":"backup","replicas":1,"schedule":"0 4 * * *"}}
	// [spec.image: Invalid value: "backup": an image needs a tag]
	// <nil>
	//
	// []
	// CronTab.stable.example.com "nightly" is invalid: spec.image: Invalid value: "restore": an image needs a tag
}

// The steps can be taken one by one.
func ExampleVersion_Prune() {
	crd, err := schema.Parse([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	v := crd.Version("v1")
	object := map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "nightly"},
		"spec": map[string]any{"replicas": int64(-1), "suspend": true},
	}
	fmt.Println(v.Prune(object))
	v.Default(object)
	fmt.Println(object["spec"])
	for _, err := range v.Validate(context.Background(), object) {
		fmt.Println(err)
	}
	// Output:
	// [spec.suspend]
	// map[replicas:-1]
	// spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0
	// spec.schedule: Required value
	// <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
}

// A conversion that restores what an older version cannot express, from an annotation that
// a user may have edited, can be told what the schema thinks of it.
func ExampleVersion_Validate() {
	crd, err := schema.Parse([]byte(cronTabs))
	if err != nil {
		panic(err)
	}
	v := crd.Version("v1")
	verify := func(ctx context.Context, hub []byte) error {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(hub); err != nil {
			return err
		}
		if unknown := v.Prune(u.Object); len(unknown) > 0 {
			return fmt.Errorf("unknown fields: %v", unknown)
		}
		v.Default(u.Object)
		return v.Validate(ctx, u.Object).ToAggregate()
	}
	_ = lossless.VerifyRestored(verify) // an option of conversion.Lossless

	ctx := context.Background()
	fmt.Println(verify(ctx, []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},"spec":{"schedule":"0 3 * * *"}}`)))
	fmt.Println(verify(ctx, []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},"spec":{"image":"backup","schedule":"0 3 * * *"}}`)))
	fmt.Println(verify(ctx, []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},"spec":{"shedule":"0 3 * * *"}}`)))
	// Output:
	// <nil>
	// spec.image: Invalid value: "backup": an image needs a tag
	// unknown fields: [spec.shedule]
}

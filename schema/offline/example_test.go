package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
	"github.com/crdkit/crdkit/scheme"
)

const cronTabYAML = `apiVersion: apiextensions.k8s.io/v1
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
            properties:
              schedule: {type: string}
              replicas: {type: integer, default: 1, minimum: 0}
`

// CronTab is a type as operators have it.
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Schedule string `json:"schedule,omitempty"`
		Replicas int    `json:"replicas,omitempty"`
	} `json:"spec,omitempty"`
}

func (c *CronTab) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// CronTabList is a list of them.
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronTab `json:"items"`
}

func (l *CronTabList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for _, c := range l.Items {
		out.Items = append(out.Items, *c.DeepCopyObject().(*CronTab))
	}
	return &out
}

func nightly(_ context.Context, c *CronTab) error {
	if c.Spec.Schedule == "" {
		c.Spec.Schedule = "0 3 * * *"
	}
	return nil
}

func notTooMany(_ context.Context, c *CronTab) (field.ErrorList, error) {
	if c.Spec.Replicas > 3 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), c.Spec.Replicas, "there is room for 3")}, nil
	}
	return nil, nil
}

// The handlers are those that the operator serves.
func Example() {
	definition, err := schema.Parse([]byte(cronTabYAML))
	if err != nil {
		panic(err)
	}
	s, err := scheme.New(scheme.Version(runtimeschema.GroupVersion{Group: "stable.example.com", Version: "v1"}, &CronTab{}, &CronTabList{}))
	if err != nil {
		panic(err)
	}
	cronTabs, err := offline.New(definition,
		offline.Mutate(admission.NewHandler(s, admission.Mutate(nightly))),
		offline.Validate(admission.NewHandler(s, admission.Validate(notTooMany))),
	)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()

	out, err := cronTabs.Create(ctx, "v1", []byte(`
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: backup
spec: {}
`))
	fmt.Println(string(out.Object), err)

	_, err = cronTabs.Patch(ctx, "v1", "default", "backup", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))
	fmt.Println(err)
	// Output:
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":1,"name":"backup","namespace":"default","resourceVersion":"1","uid":"00000000-0000-4000-8000-000000000001"},"spec":{"replicas":1,"schedule":"0 3 * * *"}} <nil>
	// admission webhook "validate.crontabs.stable.example.com" denied the request: CronTab.stable.example.com "backup" is invalid: spec.replicas: Invalid value: 4: there is room for 3
}

// An object with finalizers goes when the last one has gone.
func ExampleResource_Delete() {
	definition, err := schema.Parse([]byte(cronTabYAML))
	if err != nil {
		panic(err)
	}
	cronTabs, err := offline.New(definition, offline.Clock(func() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := cronTabs.Create(ctx, "v1", []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"backup","finalizers":["example.com/tidy"]}}`)); err != nil {
		panic(err)
	}
	out, err := cronTabs.Delete(ctx, "v1", "default", "backup")
	if err != nil {
		panic(err)
	}
	var deleting CronTab
	if err := json.Unmarshal(out.Object, &deleting); err != nil {
		panic(err)
	}
	fmt.Println(out.Deleted, deleting.DeletionTimestamp)

	out, err = cronTabs.Patch(ctx, "v1", "default", "backup", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	fmt.Println(out.Deleted, err)

	_, err = cronTabs.Get(ctx, "v1", "default", "backup")
	fmt.Println(err)
	// Output:
	// false 2026-05-01 12:00:00 +0000 UTC
	// true <nil>
	// crontabs.stable.example.com "backup" not found
}

// Only the controller may scale a CronTab.
func ExampleAs() {
	definition, err := schema.Parse([]byte(cronTabYAML))
	if err != nil {
		panic(err)
	}
	s, err := scheme.New(scheme.Version(runtimeschema.GroupVersion{Group: "stable.example.com", Version: "v1"}, &CronTab{}, &CronTabList{}))
	if err != nil {
		panic(err)
	}
	controller := authenticationv1.UserInfo{Username: "system:serviceaccount:crontabs:controller"}
	cronTabs, err := offline.New(definition, offline.Validate(admission.NewHandler(s, admission.ValidateUpdate(
		func(ctx context.Context, c, old *CronTab) (field.ErrorList, error) {
			request, _ := admission.RequestFrom(ctx)
			if c.Spec.Replicas != old.Spec.Replicas && request.UserInfo.Username != controller.Username {
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "replicas"), "the controller does that")}, nil
			}
			return nil, nil
		}))))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := cronTabs.Create(ctx, "v1", []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"backup"},"spec":{}}`)); err != nil {
		panic(err)
	}
	patch := []byte(`{"spec":{"replicas":2}}`)
	_, err = cronTabs.Patch(ctx, "v1", "default", "backup", types.MergePatchType, patch)
	fmt.Println(err)
	_, err = cronTabs.Patch(ctx, "v1", "default", "backup", types.MergePatchType, patch, offline.As(controller))
	fmt.Println(err)
	// Output:
	// admission webhook "validate.crontabs.stable.example.com" denied the request: CronTab.stable.example.com "backup" is invalid: spec.replicas: Forbidden: the controller does that
	// <nil>
}

// An older release has stored an object that the schema would refuse today. It can still be
// read, and changed in other places.
func ExampleStored() {
	definition, err := schema.Parse([]byte(cronTabYAML))
	if err != nil {
		panic(err)
	}
	cronTabs, err := offline.New(definition, offline.Stored([]byte(`
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: old
spec:
  replicas: -1
`)))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	out, err := cronTabs.Patch(ctx, "v1", "default", "old", types.MergePatchType, []byte(`{"spec":{"schedule":"0 3 * * *"}}`))
	fmt.Println(string(out.Object), err)
	_, err = cronTabs.Patch(ctx, "v1", "default", "old", types.MergePatchType, []byte(`{"spec":{"replicas":-2}}`))
	fmt.Println(err)
	// Output:
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":2,"name":"old","namespace":"default","resourceVersion":"2","uid":"00000000-0000-4000-8000-000000000001"},"spec":{"replicas":-1,"schedule":"0 3 * * *"}} <nil>
	// CronTab.stable.example.com "old" is invalid: spec.replicas: Invalid value: -2: spec.replicas in body should be greater than or equal to 0
}

func ExampleResource_List() {
	definition, err := schema.Parse([]byte(cronTabYAML))
	if err != nil {
		panic(err)
	}
	cronTabs, err := offline.New(definition)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for name, team := range map[string]string{"backup": "storage", "report": "sales"} {
		if _, err := cronTabs.Create(ctx, "v1", fmt.Appendf(nil, `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":%q,"labels":{"team":%q}}}`, name, team)); err != nil {
			panic(err)
		}
	}
	out, err := cronTabs.List(ctx, "v1", "default", offline.LabelSelector(labels.SelectorFromSet(labels.Set{"team": "sales"})))
	if err != nil {
		panic(err)
	}
	var list CronTabList
	if err := json.Unmarshal(out.Object, &list); err != nil {
		panic(err)
	}
	for _, c := range list.Items {
		fmt.Println(c.Name)
	}
	// Output: report
}

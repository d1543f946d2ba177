package apiservertest_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/schema/apiservertest"
)

// ExampleNew starts a server without a testing.TB. In a test, call Start.
func ExampleNew() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hooks, err := operator()
	if err != nil {
		panic(err)
	}
	s, err := apiservertest.New(ctx, apiservertest.Webhooks(hooks))
	if err != nil {
		panic(err)
	}
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		panic(err)
	}
	cronTabs := client.Resource(resource).Namespace("default")
	backup := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "backup"}, "spec": map[string]any{},
	}}

	out, err := cronTabs.Create(ctx, backup, metav1.CreateOptions{})
	fmt.Println(out.Object["spec"], err)

	backup.SetName("many")
	backup.Object["spec"] = map[string]any{"replicas": 4}
	_, err = cronTabs.Create(ctx, backup, metav1.CreateOptions{})
	fmt.Println(err)
	// Output:
	// map[replicas:1 schedule:0 3 * * *] <nil>
	// admission webhook "validate.crontabs.stable.example.com" denied the request: CronTab.stable.example.com "many" is invalid: spec.replicas: Invalid value: 4: at most 3
}

// ExampleRBAC sends requests as the service account of an operator, and prints how its role can be improved.
func ExampleRBAC() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := apiservertest.New(ctx, apiservertest.RBAC(), apiservertest.Manifests([]byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: system}]`)))
	if err != nil {
		panic(err)
	}
	config := s.Config()
	config.Impersonate.UserName = "system:serviceaccount:system:operator"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Get(ctx, "settings", metav1.GetOptions{})
	fmt.Println(err)
	_, err = client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)

	access, err := s.Access(config.Impersonate.UserName)
	if err != nil {
		panic(err)
	}
	fmt.Print(access)
	// Output:
	// configmaps "settings" not found
	// configmaps is forbidden: User "system:serviceaccount:system:operator" cannot list resource "configmaps" in API group "" in the namespace "default"
	// ---
	// # missing
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: ""
	// rules:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - configmaps
	//   verbs:
	//   - list
	// ---
	// # unused
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: operator
	// rules:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - configmaps
	//   verbs:
	//   - update
	// ---
	// # sufficient
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: operator
	// rules:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - configmaps
	//   verbs:
	//   - get
}

// ExampleServer_Inject loses the answer to an update. The client then has an old resourceVersion.
func ExampleServer_Inject() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := apiservertest.New(ctx, apiservertest.Manifests([]byte(cronTabYAML)))
	if err != nil {
		panic(err)
	}
	config := s.Config()
	config.Impersonate.UserName = "system:serviceaccount:system:operator"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	cronTabs := client.Resource(resource).Namespace("default")
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "backup"}, "spec": map[string]any{},
	}}
	if obj, err = cronTabs.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
		panic(err)
	}

	fault := s.Inject(apiservertest.Fault{
		User: config.Impersonate.UserName, Verb: "update", Resource: "crontabs",
		Done: true, Err: apierrors.NewTimeoutError("the answer is lost", 0),
	})
	obj.SetLabels(map[string]string{"run": "1"})
	for range 2 {
		_, err = cronTabs.Update(ctx, obj, metav1.UpdateOptions{})
		fmt.Println(err)
	}
	fmt.Println(fault.Failed(), "failed")
	// Output:
	// Timeout: the answer is lost
	// Operation cannot be fulfilled on crontabs.stable.example.com "backup": the object has been modified; please apply your changes to the latest version and try again
	// 1 failed
}

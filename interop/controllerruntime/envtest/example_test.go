package envtest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdkit/crdkit/interop/controllerruntime/envtest"
	"github.com/crdkit/crdkit/schema/apiservertest"
)

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: system}]
`

// ExampleEnvironment tests the roles of an operator. The server reports the rule that they lack.
func ExampleEnvironment() {
	testEnv := &envtest.Environment{
		Options: []apiservertest.Option{apiservertest.RBAC(), apiservertest.Manifests([]byte(roles))},
	}
	if _, err := testEnv.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = testEnv.Stop() }()

	operator := envtest.User{Name: "system:serviceaccount:system:operator"}
	user, err := testEnv.AddUser(operator, nil)
	if err != nil {
		panic(err)
	}
	c, err := client.New(user.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		panic(err)
	}
	err = c.List(context.Background(), &corev1.ConfigMapList{})
	fmt.Println(err)

	access, err := testEnv.Server.Access(operator.Name)
	if err != nil {
		panic(err)
	}
	fmt.Println("missing:", access.Missing[0].Rules)
	// Output:
	// configmaps is forbidden: User "system:serviceaccount:system:operator" cannot list resource "configmaps" in API group "" at the cluster scope
	// missing: [{[list] [] [configmaps] [] []}]
}

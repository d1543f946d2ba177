package offline_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/schema/offline"
)

const operatorRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules:
- {apiGroups: ["", apps], resources: [configmaps, deployments], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], resourceNames: [ca, token], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: system}
rules:
- {apiGroups: [coordination.k8s.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: operator}]
`

const operatorUser = "system:serviceaccount:system:operator"

// operator returns a client with the rights of the operator.
func operatorClient(t *testing.T, s *offline.Server) kubernetes.Interface {
	config := s.Config()
	config.Impersonate.UserName = operatorUser
	return kubernetes.NewForConfigOrDie(config)
}

func TestRBAC_Access(t *testing.T) {
	s := offline.Start(t, offline.RBAC(), offline.Manifests([]byte(operatorRoles)))
	client := operatorClient(t, s)
	ctx := t.Context()
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Secrets("default").Get(ctx, "ca", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if _, err := client.CoordinationV1().Leases("system").List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	for _, get := range []func() error{
		func() error {
			_, err := client.CoreV1().Secrets("default").Get(ctx, "other", metav1.GetOptions{})
			return err
		},
		func() error {
			_, err := client.CoordinationV1().Leases("default").List(ctx, metav1.ListOptions{})
			return err
		},
		func() error {
			_, err := client.CoreV1().Events("system").Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
			return err
		},
	} {
		if err := get(); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		} else if !strings.Contains(err.Error(), `User "`+operatorUser+`" cannot`) {
			t.Error(err)
		}
	}
	got, err := s.Access(ctx, operatorUser)
	if err != nil {
		t.Fatal(err)
	}
	want := offline.Access{
		Refused: []offline.Rules{
			{Rules: []rbacv1.PolicyRule{
				rule("", "pods", "", "watch"), rule("", "secrets", "", "get"), rule("coordination.k8s.io", "leases", "", "list"),
			}},
			{Namespace: "system", Rules: []rbacv1.PolicyRule{rule("", "events", "", "create")}},
		},
		Unused: []offline.Rules{{Role: `ClusterRole "operator"`, Rules: []rbacv1.PolicyRule{
			rule("", "configmaps", "", "get", "watch"), rule("", "deployments", "", "get", "list", "watch"), rule("", "secrets", "token", "get"),
			{APIGroups: []string{"apps"}, Resources: []string{"configmaps", "deployments"}, Verbs: []string{"get", "list", "watch"}},
		}}},
		Sufficient: []offline.Rules{
			{Role: `ClusterRole "operator"`, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "list"), rule("", "secrets", "ca", "get")}},
			{Role: `Role "leader"`, Namespace: "system", Rules: []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "", "list")}},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const text = "# all roles: missing, in namespace system\nrules:\n- apiGroups:\n  - \"\"\n  resources:\n  - events\n  verbs:\n  - create\n"
	if !strings.Contains(got.String(), text) {
		t.Errorf("got\n%s", got)
	}
}

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		r.ResourceNames = []string{name}
	}
	return r
}

func TestRBAC_Reviews(t *testing.T) {
	s := offline.Start(t, offline.RBAC(), offline.Manifests([]byte(operatorRoles)))
	admin, operator := kubernetes.NewForConfigOrDie(s.Config()), operatorClient(t, s)
	for verb, want := range map[string]bool{"list": true, "delete": false} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: operatorUser, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "configmaps", Namespace: "x"}}
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != want {
			t.Errorf("%s: %v %v", verb, review, err)
		}
		self, err := operator.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: spec.ResourceAttributes}}, metav1.CreateOptions{})
		if err != nil || self.Status.Allowed != want {
			t.Errorf("%s: %v %v", verb, self, err)
		}
		local, err := admin.AuthorizationV1().LocalSubjectAccessReviews("x").Create(t.Context(), &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x"}, Spec: spec}, metav1.CreateOptions{})
		if err != nil || local.Status.Allowed != want {
			t.Errorf("%s: %v %v", verb, local, err)
		}
	}
	if _, err := operator.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
	// A change takes effect at the next request.
	if _, err := admin.RbacV1().ClusterRoles().Update(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
}

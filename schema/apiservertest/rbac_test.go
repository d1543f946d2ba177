package apiservertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
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
func operatorClient(t *testing.T, s *apiservertest.Server) kubernetes.Interface {
	config := s.Config()
	config.Impersonate.UserName = operatorUser
	return kubernetes.NewForConfigOrDie(config)
}

func TestRBAC_Access(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles)))
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
	got, err := s.Access(operatorUser)
	expect.NoError(t, err)
	want := apiservertest.Access{
		Missing: []apiservertest.Role{
			{Kind: "ClusterRole", Rules: []rbacv1.PolicyRule{
				rule("", "pods", "", "list", "watch"), rule("", "secrets", "", "get"), rule("coordination.k8s.io", "leases", "", "list"),
			}},
			{Kind: "Role", Namespace: "system", Rules: []rbacv1.PolicyRule{rule("", "events", "", "create")}},
		},
		Unused: []apiservertest.Role{{Kind: "ClusterRole", Name: "operator", Rules: []rbacv1.PolicyRule{
			rule("", "configmaps", "", "get", "watch"), rule("", "deployments", "", "get", "list", "watch"), rule("", "secrets", "token", "get"),
			{APIGroups: []string{"apps"}, Resources: []string{"configmaps", "deployments"}, Verbs: []string{"get", "list", "watch"}},
		}}},
		Sufficient: []apiservertest.Role{
			{Kind: "ClusterRole", Name: "operator", Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "list"), rule("", "secrets", "ca", "get")}},
			{Kind: "Role", Namespace: "system", Name: "leader", Rules: []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "", "list")}},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := s.Access("nobody"); err == nil {
		t.Error("the access of a user who has sent no request")
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
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles)))
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
	_, err := admin.RbacV1().ClusterRoles().Update(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}, metav1.UpdateOptions{})
	expect.NoError(t, err)
	for {
		if _, err := operator.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); apierrors.IsForbidden(err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A role that is bound in two namespaces is reported once, and one that aggregates others has their rules.
func TestAccess_RolesOfSeveralBindings(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {part: all}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part, labels: {part: all}}, rules: [{apiGroups: [""], resources: [pods, pods/finalizers], verbs: [get, update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: kube-public}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: c, namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lost}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]}
`)))
	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"dev"}}
	client := kubernetes.NewForConfigOrDie(config)
	for _, namespace := range []string{"default", "kube-public"} {
		if _, err := client.CoreV1().Pods(namespace).Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	_, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	expect.ErrorContains(t, err, `clusterrole.rbac.authorization.k8s.io "lost" not found`)
	got, err := s.Access("ann")
	expect.NoError(t, err)
	want := apiservertest.Access{
		Missing: []apiservertest.Role{{Kind: "Role", Namespace: "default", Rules: []rbacv1.PolicyRule{rule("", "pods", "", "list")}}},
		Unused:  []apiservertest.Role{{Kind: "ClusterRole", Name: "all", Rules: []rbacv1.PolicyRule{rule("", "pods", "", "update")}}},
		Sufficient: []apiservertest.Role{{Kind: "ClusterRole", Name: "all", Rules: []rbacv1.PolicyRule{
			rule("", "pods", "", "get"), rule("", "pods/finalizers", "", "get", "update")}}},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Nobody grants more than they have, unless they may escalate or bind the role.
func TestRBAC_Escalation(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles)))
	admin, client := kubernetes.NewForConfigOrDie(s.Config()).RbacV1(), operatorClient(t, s).RbacV1()
	meta := metav1.ObjectMeta{Name: "writer"}
	_, err := admin.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"create", "update"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"escalate"}, ResourceNames: []string{"any"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"}, ResourceNames: []string{"cluster-admin"}},
	}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = admin.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "writer"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "system", Name: "operator"}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	role := func(name string, rules ...rbacv1.PolicyRule) error {
		for {
			_, err := client.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "currently held") {
				return err
			}
			time.Sleep(10 * time.Millisecond) // until the server knows the binding of the writer
		}
	}
	bind := func(kind, name string) error {
		_, err := client.RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "b-"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}, metav1.CreateOptions{})
		return err
	}
	// A POST has no name with which the permission to escalate the role could be compared.
	if err := role("any", rule("", "pods", "", "delete")); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
	escalate := func() error {
		_, err := client.Roles("default").Update(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "any"}, Rules: []rbacv1.PolicyRule{rule("", "pods", "", "delete")}}, metav1.UpdateOptions{})
		return err
	}
	for what, err := range map[string]error{
		"a role with held rules": role("held", rule("", "configmaps", "", "list")),
		"a role to escalate":     escalate(),
		"a role to bind":         bind("ClusterRole", "cluster-admin"),
		"a role that is held":    bind("ClusterRole", "operator"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	const missing = "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}"
	for what, err := range map[string]error{"a role": role("more", rule("", "pods", "", "delete")), "a binding": bind("Role", "any")} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: got %v, want forbidden", what, err)
		}
	}
	got, err := s.Access(operatorUser)
	expect.NoError(t, err)
	if diff := gocmp.Diff([]apiservertest.Role{{Kind: "ClusterRole", Rules: []rbacv1.PolicyRule{rule("", "pods", "", "delete")}}}, got.Missing); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An operator binds each role as soon as it has created it.
func TestRBAC_BindANewRole(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles), []byte(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: writer}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: writer}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}, subjects: [{kind: ServiceAccount, name: operator, namespace: system}]}
`)))
	client := operatorClient(t, s).RbacV1()
	for i := range 100 {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("r%d", i)}
		_, err := client.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "list")}}, metav1.CreateOptions{})
		expect.NoError(t, err)
		_, err = client.RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
		expect.NoError(t, err)
	}
}

// Requests that were allowed before a role changed are missing, too, and a watch needs list.
func TestAccess_NotGrantedAnymore(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles)))
	client := operatorClient(t, s)
	_, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	expect.NoError(t, kubernetes.NewForConfigOrDie(s.Config()).RbacV1().ClusterRoleBindings().Delete(t.Context(), "operator", metav1.DeleteOptions{}))
	want := []apiservertest.Role{{Kind: "ClusterRole", Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "list", "watch")}}}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got, err := s.Access(operatorUser)
		expect.NoError(t, err)
		diff := gocmp.Diff(want, got.Missing)
		if diff == "" {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// A rule that a policy demands is used.
func TestAccess_OfAPolicy(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operator}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, tag]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: ServiceAccount, name: operator, namespace: system}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tags}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "['tag', 'own'].exists(v, authorizer.group('').resource('configmaps').check(v).allowed())"}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: tags}, spec: {policyName: tags, validationActions: [Deny]}}
`)))
	_, err := operatorClient(t, s).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	got, err := s.Access(operatorUser)
	expect.NoError(t, err)
	want := apiservertest.Access{Sufficient: []apiservertest.Role{{Kind: "ClusterRole", Name: "operator", Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "create", "tag")}}}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The garbage collector may remove references of a role that it may not write.
func TestRBAC_EscalationByUpdate(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.RBAC(), apiservertest.Manifests([]byte(operatorRoles), []byte(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: writer}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: writer}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}, subjects: [{kind: ServiceAccount, name: operator, namespace: system}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all, finalizers: [example.com/a]}, aggregationRule: {clusterRoleSelectors: [{}]}}
`)))
	roles := operatorClient(t, s).RbacV1().ClusterRoles()
	all, err := kubernetes.NewForConfigOrDie(s.Config()).RbacV1().ClusterRoles().Get(t.Context(), "all", metav1.GetOptions{})
	expect.NoError(t, err)
	all.Finalizers = nil
	all, err = roles.Update(t.Context(), all, metav1.UpdateOptions{})
	expect.NoError(t, err)
	all.AggregationRule = nil
	if _, err = roles.Update(t.Context(), all, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`) {
		t.Errorf("got %v, want forbidden", err)
	}
}

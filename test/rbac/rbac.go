// Package rbac grants permissions to users of an API server in tests.
package rbac

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
)

// Grant grants rules to a user, in a namespace or, if it is empty, in the whole cluster. The config is that of an
// administrator. Grant waits until the authorizer of the API server has seen the rules.
func Grant(t testing.TB, config *rest.Config, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	meta := metav1.ObjectMeta{GenerateName: "granted-"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if namespace == "" {
		role, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		expect.NoError(t, err)
		ref.Kind, ref.Name = "ClusterRole", role.Name
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		expect.NoError(t, err)
	} else {
		role, err := client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		expect.NoError(t, err)
		ref.Kind, ref.Name = "Role", role.Name
		_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			expect.Eventually(t, func() error {
				resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
				review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Name: strings.Join(rule.ResourceNames[:min(1, len(rule.ResourceNames))], ""),
					},
				}}, metav1.CreateOptions{})
				if err == nil && !review.Status.Allowed {
					err = fmt.Errorf("%s may not %s %v", user, verb, rule)
				}
				return err
			})
		}
	}
}

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PolicyRules returns the permissions that [Run] and [Remove] need for a CRD, as rules of a
// ClusterRole. crd is the name of the CRD. Run patches the status of objects if it is a
// subresource; otherwise, and to restore or forget managedFields, the objects themselves are
// patched. Grant them to another service account than the operator's if that is limited by
// webhook/registration's Guard, which denies writes to the CRD. The caller may modify the result.
func PolicyRules(crd string) []rbacv1.PolicyRule {
	resource := schema.ParseGroupResource(crd)
	return []rbacv1.PolicyRule{
		{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource}, ResourceNames: []string{crd}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource + "/status"}, ResourceNames: []string{crd}, Verbs: []string{"patch"}},
		{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource + "/status"}, Verbs: []string{"patch"}},
	}
}

// ControllerRules returns the minimum permissions of a [Controller] for a CRD: the rules of
// [PolicyRules], and the permission to watch the CRD. The caller may modify the result.
func ControllerRules(crd string) []rbacv1.PolicyRule {
	return append(PolicyRules(crd),
		rbacv1.PolicyRule{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource}, ResourceNames: []string{crd}, Verbs: []string{"watch"}},
	)
}

var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// permitted returns an error if the user lacks a permission to rewrite objects by patches
// of these subresources. Otherwise each object would fail.
func (m *migrator) permitted(ctx context.Context, d *definition, subresources ...string) error {
	type need struct{ verb, subresource string }
	needs := []need{{"get", ""}}
	for _, s := range subresources {
		needs = append(needs, need{"patch", s})
	}
	var errs []error
	for _, n := range needs {
		var allowed bool
		err := m.insist(ctx, func() error {
			review, err := m.dynamic.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": reviews.GroupVersion().String(),
				"kind":       "SelfSubjectAccessReview",
				"spec": map[string]any{"resourceAttributes": map[string]any{
					"verb": n.verb, "group": d.Spec.Group, "resource": d.Spec.Names.Plural, "subresource": n.subresource,
				}},
			}}, metav1.CreateOptions{})
			if err == nil {
				allowed, _, err = unstructured.NestedBool(review.Object, "status", "allowed")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("asking what this user may do: %w", err)
		}
		if !allowed {
			name := strings.TrimSuffix(d.Spec.Names.Plural+"/"+n.subresource, "/")
			errs = append(errs, fmt.Errorf("%s: this user may not %s them in the whole cluster: PolicyRules (crdmigrate rules) has the rights", name, n.verb))
		}
	}
	return errors.Join(errs...)
}

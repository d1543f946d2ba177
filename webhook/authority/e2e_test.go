package authority

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
)

// TestAuthority_RealAPIServer runs authorities as users that have exactly the rights of the package
// documentation, or one less.
func TestAuthority_RealAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	admin, err := kubernetes.NewForConfig(cp.Config())
	expect.NoError(t, err)
	t.Run("two replicas live through deletion, corruption and rotations", func(t *testing.T) {
		t.Parallel()
		config := grant(t, cp, admin, "whole", "create", "get", "update", "watch")
		secrets := admin.CoreV1().Secrets("whole")
		first, second := runFor(t, config, "whole"), runFor(t, config, "whole")
		replicas := []*running{first, second}
		await := func(what string, f func(*corev1.Secret, *state) bool) *corev1.Secret {
			t.Helper()
			var obj *corev1.Secret
			expect.Eventually(t, func() (err error) {
				if obj, err = secrets.Get(t.Context(), "ca", metav1.GetOptions{}); err == nil {
					if s, err := parseState(obj.Data); err == nil && bytes.Equal(obj.Data[bundleKey], s.bundle()) && f(obj, s) {
						return nil
					}
				}
				return fmt.Errorf("waiting until %s: %v; the logs: %q", what, err, slices.Concat(first.logged(), second.logged()))
			})
			return obj
		}
		serves := func(issuer *ca, bundle []byte) bool {
			for _, r := range replicas {
				leaf, err := r.GetCertificate(nil)
				if err != nil || leaf.Leaf.CheckSignatureFrom(issuer.cert) != nil || r.Ready(nil) != nil || shake(r.Authority, bundle, tls.VersionTLS13, time.Now()) != nil {
					return false
				}
			}
			return true
		}
		obj := await("both serve", func(obj *corev1.Secret, s *state) bool { return serves(s.current, obj.Data[bundleKey]) })
		if obj.Type != corev1.SecretTypeTLS {
			t.Errorf("the type is %s", obj.Type)
		}
		if ahead := time.Duration(first.clock.ahead.Load()); ahead == 0 || ahead.Abs() > time.Minute {
			t.Errorf("the clock is %s ahead of the API server's", ahead)
		}

		obj.Labels = map[string]string{"a": "b"}
		obj.Data["mine"] = []byte("too")
		obj.Data[privateKey] = []byte("garbage")
		if _, err := secrets.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			// Both may write at any time.
			t.Log(err)
			obj = await("it is whole", func(*corev1.Secret, *state) bool { return true })
			obj.Labels = map[string]string{"a": "b"}
			obj.Data["mine"] = []byte("too")
			obj.Data[privateKey] = []byte("garbage")
			_, err := secrets.Update(t.Context(), obj, metav1.UpdateOptions{})
			expect.NoError(t, err)
		}
		obj = await("it is restored", func(obj *corev1.Secret, s *state) bool { return obj.Labels["a"] == "b" })
		if string(obj.Data["mine"]) != "too" {
			t.Error("a foreign key is lost")
		}

		old := await("there is one", func(_ *corev1.Secret, s *state) bool { return s.next == nil })
		expect.NoError(t, secrets.Delete(t.Context(), "ca", metav1.DeleteOptions{}))
		begin := time.Now()
		before, err := parseState(old.Data)
		expect.NoError(t, err)
		await("it is back", func(_ *corev1.Secret, s *state) bool { return s.trusts(before.current.cert) })
		t.Logf("a deleted Secret was back after %s", time.Since(begin))

		last := before.current
		for range 2 {
			await("the CA has rotated", func(obj *corev1.Secret, s *state) bool {
				if s.current.cert.Equal(last.cert) || !serves(s.current, obj.Data[bundleKey]) || !serves(s.current, old.Data[bundleKey]) && last == before.current {
					return false
				}
				last = s.current
				return true
			})
		}
		if logs := slices.Concat(first.logged(), second.logged()); len(logs) != 1 || !strings.Contains(logs[0], `"reason"="SecretRepaired"`) {
			t.Errorf("they log %q, want the repair", logs)
		}

		planted := makeCA(t, time.Now(), time.Hour)
		await("the planted CA is trusted", func(obj *corev1.Secret, s *state) bool {
			if s.trusts(planted.cert) {
				return true
			}
			s.retire(planted.cert)
			obj.Data = encoded(t, s)
			_, err := secrets.Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "mallory"})
			return err == nil
		})
		expect.Eventually(t, func() error {
			events, err := admin.CoreV1().Events("whole").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UnknownCA,type=Warning,involvedObject.name=ca"})
			if err != nil || len(events.Items) == 0 {
				return fmt.Errorf("no Event of the Secret: %v; the logs: %q", err, slices.Concat(first.lines(), second.lines()))
			}
			if message := events.Items[0].Message; !strings.Contains(message, fingerprint(planted.cert)) || !strings.Contains(message, "mallory") {
				t.Errorf("the Event says %q", message)
			}
			return nil
		})
	})

	for missing, want := range map[string]string{
		"create": `writing the Secret: secrets is forbidden: User \"no-create\" cannot create resource`,
		"get":    `reading the Secret: secrets \"ca\" is forbidden: User \"no-get\" cannot get resource`,
		"update": `writing the Secret: secrets \"ca\" is forbidden: User \"no-update\" cannot update resource`,
		"watch":  `secrets \"ca\" is forbidden: User \"no-watch\" cannot watch resource`,
	} {
		t.Run("without "+missing, func(t *testing.T) {
			t.Parallel()
			namespace := "no-" + missing
			verbs := slices.DeleteFunc([]string{"create", "get", "update", "watch"}, func(verb string) bool { return verb == missing })
			r := runFor(t, grant(t, cp, admin, namespace, verbs...), namespace)
			expect.Eventually(t, func() error {
				if log := fmt.Sprint(r.logged()); !strings.Contains(strings.ReplaceAll(log, `\\\"`, `\"`), want) {
					return fmt.Errorf("the log does not say %s: %s", want, log)
				}
				return nil
			})
			if err, serves := r.Ready(nil), missing == "update" || missing == "watch"; (err == nil) != serves && missing != "watch" {
				t.Errorf("it serves: %v", err)
			}
		})
	}
}

// grant makes a namespace, and a user of the same name who has these of the rights in it.
func grant(t *testing.T, cp *controlplane.ControlPlane, admin kubernetes.Interface, name string, verbs ...string) *rest.Config {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, rule := range PolicyRules("ca") {
		rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(verbs, verb) })
		if len(rule.Verbs) > 0 {
			rules = append(rules, rule)
		}
	}
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	rbac.Grant(t, cp.Config(), name, name, rules...)
	config, err := cp.User(name)
	expect.NoError(t, err)
	return config
}

// runFor runs an authority whose times are of seconds.
func runFor(t *testing.T, config *rest.Config, namespace string) *running {
	t.Helper()
	return runIn(t, config, namespace,
		CALifetime(time.Minute), RotateAfter(5*time.Second), CertificateLifetime(8*time.Second), Interval(time.Second), PropagationDelay(2*time.Second))
}

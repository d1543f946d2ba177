package registration

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

func newGuard(t *testing.T) (w *Webhooks, binding *object) {
	t.Helper()
	w, err := New("pizza-operator", Service("pizza-system", "pizza-operator"), Guard("pizza-operator", "ca"),
		Validating("a.example.com", "/a", http.NotFoundHandler(), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules = make([]admissionregistrationv1.RuleWithOperations, 1)
		}))
	expect.NoError(t, err)
	return w, w.objects[len(w.objects)-1]
}

// Each problem is logged once, however long it lasts, and again when it comes back.
func TestGuard_ProblemsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newGuard(t)
		client := fake.NewSimpleDynamicClient(runtime.NewScheme())
		var mu sync.Mutex
		var refusal error
		client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			return refusal != nil, nil, refusal
		})
		s := &objectState{object: o, webhooks: w, all: client, client: client.Resource(o.resource)}
		logged, lines := logcheck.Record(t.Context())
		go s.run(logged)
		put := func(change func(spec map[string]any)) {
			t.Helper()
			u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.declared)}
			change(u.Object["spec"].(map[string]any))
			_ = client.Tracker().Delete(o.resource, "", o.name)
			expect.NoError(t, client.Tracker().Add(u))
		}
		before := 0
		for i, step := range []struct {
			change func()
			line   string // "" for none
			field  string // that differs, if one does
			differ int
		}{
			{func() {}, "not in the cluster: apply the manifests", "", 1},
			{func() { put(func(map[string]any) {}) }, "", "", 0},
			{func() { put(func(spec map[string]any) { spec["validationActions"] = []any{"Audit"} }) }, `spec.validationActions is [\"Audit\"], expected [\"Deny\"]`, "spec.validationActions", 1},
			{func() { put(func(spec map[string]any) { spec["matchResources"] = map[string]any{"a": "b"} }) }, `spec.matchResources is {\"a\":\"b\"}, expected absent`, "spec.matchResources", 1},
			{func() { put(func(spec map[string]any) { spec["later"] = "field" }) }, "", "", 0},
			{func() {
				refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "policies"}, "a", errors.New("no"))
			}, `policies \"a\" is forbidden: no`, "", 0},
			{func() { refusal = nil; put(func(spec map[string]any) { spec["policyName"] = "b" }) }, `spec.policyName is \"b\"`, "spec.policyName", 1},
		} {
			mu.Lock()
			step.change()
			mu.Unlock()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			now := lines()[before:]
			before += len(now)
			if want := map[bool]int{false: 1}[step.line == ""]; len(now) != want || !strings.Contains(strings.Join(now, ""), step.line) {
				t.Errorf("step %d: the log is %q", i, now)
			}
			s.mu.Lock()
			if len(s.differences) != step.differ || step.differ > 0 && s.differences[0].Field != step.field {
				t.Errorf("step %d: the differences are %v", i, s.differences)
			}
			s.mu.Unlock()
		}
	})
}

func TestGuard_Mistakes(t *testing.T) {
	service := Service("pizza-system", "pizza-operator")
	for want, options := range map[string][]Option{
		`Guard: name "", expected that of a service account or Secret`:           {service, Guard("", "d")},
		`Guard: name "\" || true", expected that of a service account or Secret`: {service, Guard(`" || true`, "d")},
		`Guard: name "D", expected that of a service account or Secret`:          {service, Guard("c", "D")},
		"Guard is given twice": {service, Guard("c", "d"), Guard("c", "")},
		`namespace "" of the operator, expected a name, which Guard and NetworkPolicy need: set OwnNamespace`:    {URL("https://127.0.0.1"), Guard("c", "d")},
		`namespace "a.b" of the operator, expected a name, which Guard and NetworkPolicy need: set OwnNamespace`: {URL("https://127.0.0.1"), OwnNamespace("a.b"), Guard("c", "d")},
	} {
		_, err := New("a", options...)
		expect.ErrorContains(t, err, want)
	}
}

// Without a Secret, the guard has no rule for Secrets.
func TestGuard_WithoutSecret(t *testing.T) {
	s := &settings{name: "a", ownNamespace: "b", guard: &guard{"c", ""}}
	rules, _, _ := unstructured.NestedSlice(s.guardObjects()[0].declared, "spec", "matchConstraints", "resourceRules")
	var resources []any
	for _, r := range rules {
		resources = append(resources, r.(map[string]any)["resources"].([]any)...)
	}
	want := []any{"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions", "customresourcedefinitions/status"}
	if diff := cmp.Diff(want, resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

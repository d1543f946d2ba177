package registration_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/webhook/registration"
)

func TestRolloutsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, cluster){
		"a replica that never gets ready changes no rules":             unreadyChangesNothing,
		"what a release adds waits until it is ready":                  addedWaits,
		"where nothing is registered, an unready replica registers":    unreadyRegistersFirst,
		"rules of replicas that have gone are replaced":                goneAreReplaced,
		"a claim of the far future orders nothing":                     farFutureOrdersNothing,
		"match conditions of others are removed":                       foreignConditionsAreRemoved,
		"what the operator once created without apply is taken away":   createdIsTakenAway,
		"a conversion is never taken away":                             conversionIsNeverTakenAway,
		"the API server refuses the rules that New refuses, no others": rulesAreCheckedAlike,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// switched is a ready function that a test turns on.
func switched() (*atomic.Bool, registration.ReconcileOption) {
	var on atomic.Bool
	return &on, registration.ClaimWhen(on.Load)
}

// timeoutIs returns an error unless the first mutating webhook has that timeout.
func (c cluster) timeoutIs(t testing.TB, name string, want int64) error {
	t.Helper()
	u, err := c.Resource(mutating).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	if len(hooks) == 0 {
		return fmt.Errorf("there are no webhooks")
	}
	if got := hooks[0].(map[string]any)["timeoutSeconds"]; got != want {
		return fmt.Errorf("the timeout is %v, want %d", got, want)
	}
	return nil
}

// release is a declaration of the shop that differs in a timeout.
func (s *shop) release(t testing.TB, name string, seconds int) *registration.Webhooks {
	t.Helper()
	return declare(t, name, s.definitions(), s.conversion(), s.mutating(registration.Timeout(time.Duration(seconds)*time.Second)), s.validating())
}

func unreadyChangesNothing(t *testing.T, c cluster) {
	s := newShop(t, "stuck.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	b := newBundle(ca)
	old, next := s.release(t, "stuck", 1), s.release(t, "stuck", 2)
	stopOld := reconcile(t, old, c.Config(), b)
	eventually(t, ready(old))
	before := c.versions(t, s, "stuck")
	isReady, option := switched()
	stop := reconcile(t, next, c.Config(), b, option)
	eventually(t, ready(next)) // so that it can get ready
	check(t, next.Carry(ca))
	time.Sleep(3 * 200 * time.Millisecond)
	if diff := cmp.Diff(before, c.versions(t, s, "stuck")); diff != "" {
		t.Errorf("a replica that is not ready has written (-before +after):\n%s", diff)
	}
	// It does its duty as an older one.
	stopOld()
	other, _, _ := newCA(t, "other")
	b.set(other)
	eventually(t, func() error { return carry(t, other, c.get(t, mutating, "stuck"), c.get(t, validating, "stuck")) })
	eventually(t, ready(next))
	check(t, c.timeoutIs(t, "stuck", 1))
	// The rollback: it goes, and nothing has happened.
	stop()
	again := s.release(t, "stuck", 1)
	defer reconcile(t, again, c.Config(), b)()
	eventually(t, ready(again))

	// The next one gets ready.
	defer reconcile(t, next, c.Config(), b, option)()
	eventually(t, ready(next))
	check(t, c.timeoutIs(t, "stuck", 1))
	isReady.Store(true)
	eventually(t, func() error { return c.timeoutIs(t, "stuck", 2) })
	eventually(t, ready(again))
}

func addedWaits(t *testing.T, c cluster) {
	s := newShop(t, "added.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	old := declare(t, "added", s.definitions(), s.noConversion(), s.validating())
	next := declare(t, "added", s.options()...)
	defer reconcile(t, old, c.Config(), newBundle(ca))()
	eventually(t, ready(old))
	isReady, option := switched()
	defer reconcile(t, next, c.Config(), newBundle(ca), option)()
	eventually(t, ready(next))
	check(t, next.Carry(ca))
	time.Sleep(3 * 200 * time.Millisecond)
	if _, err := c.Resource(mutating).Get(t.Context(), "added", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook that it adds: %v", err)
	}
	if configs := clientConfigs(c.get(t, definitions, "pizzas.added.example.com")); len(configs) > 0 {
		t.Errorf("the definition is converted by %v", configs)
	}
	isReady.Store(true)
	eventually(t, func() error {
		if _, err := c.Resource(mutating).Get(t.Context(), "added", metav1.GetOptions{}); err != nil {
			return err
		}
		return carry(t, ca, c.get(t, definitions, "pizzas.added.example.com"), c.get(t, mutating, "added"))
	})
	eventually(t, ready(next))
	eventually(t, ready(old))
}

func unreadyRegistersFirst(t *testing.T, c cluster) {
	s := newShop(t, "first.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "first", s.options()...)
	_, option := switched()
	defer reconcile(t, hooks, c.Config(), newBundle(ca), option)()
	eventually(t, ready(hooks))
	for _, u := range c.all(t, s, "first") {
		check(t, carry(t, ca, u))
	}
}

func goneAreReplaced(t *testing.T, c cluster) {
	s := newShop(t, "replaced.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	const patience = 1500 * time.Millisecond
	hooks, others := s.release(t, "replaced", 1), s.release(t, "replaced", 2)
	defer reconcile(t, hooks, c.Config(), newBundle(ca), registration.TakeOverAfter(patience))()
	eventually(t, ready(hooks))
	stop := reconcile(t, others, c.Config(), newBundle(ca))
	eventually(t, func() error { return c.timeoutIs(t, "replaced", 2) })
	eventually(t, ready(hooks))
	stop()
	took := eventually(t, func() error { return c.timeoutIs(t, "replaced", 1) })
	if took < patience/2 {
		t.Errorf("it took over after %s", took)
	}
	eventually(t, ready(hooks))

	// One that is not ready does not.
	_, option := switched()
	unready := s.release(t, "replaced", 3)
	defer reconcile(t, unready, c.Config(), newBundle(ca), option, registration.TakeOverAfter(50*time.Millisecond))()
	eventually(t, ready(unready))
	time.Sleep(time.Second)
	check(t, c.timeoutIs(t, "replaced", 1))
}

func farFutureOrdersNothing(t *testing.T, c cluster) {
	s := newShop(t, "future.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	for _, at := range []string{"2261-12-31T23:59:59.999999999Z", "2262-04-11T23:47:16.854775807Z", "9999-01-01T00:00:00Z", time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)} {
		hooks := s.release(t, "future", 1)
		stop := reconcile(t, hooks, c.Config(), newBundle(ca))
		eventually(t, ready(hooks))
		damage := `[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":7},{"op":"replace","path":"/metadata/annotations/registration.crdkit.github.io~1declared","value":"` + at + ` x"}]`
		c.patch(t, mutating, "future", damage)
		eventually(t, func() error { return c.timeoutIs(t, "future", 1) })
		stop()
		c.patch(t, mutating, "future", damage)
		hooks = s.release(t, "future", 1)
		stop = reconcile(t, hooks, c.Config(), newBundle(ca))
		eventually(t, func() error { return c.timeoutIs(t, "future", 1) })
		stop()
	}
	claimed, _, _ := strings.Cut(c.get(t, mutating, "future").GetAnnotations()[registration.DeclaredAnnotation], " ")
	if got, err := time.Parse(time.RFC3339Nano, claimed); err != nil || got.After(time.Now().Add(time.Hour)) {
		t.Errorf("the claim is %q", claimed)
	}
}

func foreignConditionsAreRemoved(t *testing.T, c cluster) {
	s := newShop(t, "conditions.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "conditions", s.definitions(), s.noConversion(), s.mutating(registration.MatchConditions(condition("ours"))), s.validating())
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	for _, resource := range []string{"mutating", "validating"} {
		gvr, want := mutating, []any{map[string]any{"name": "ours", "expression": "true"}}
		if resource == "validating" {
			gvr, want = validating, nil
		}
		_, err := c.Resource(gvr).Apply(t.Context(), "conditions", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": c.get(t, gvr, "conditions").GetKind(), "metadata": map[string]any{"name": "conditions"},
			"webhooks": []any{map[string]any{
				"name":            map[string]string{"mutating": "default.pizzas.", "validating": "validate.pizzas."}[resource] + s.group,
				"matchConditions": []any{map[string]any{"name": "never", "expression": "false"}},
			}},
		}}, metav1.ApplyOptions{FieldManager: "somebody"})
		check(t, err)
		eventually(t, func() error {
			webhooks, _, _ := unstructured.NestedSlice(c.get(t, gvr, "conditions").Object, "webhooks")
			got, _ := webhooks[0].(map[string]any)["matchConditions"].([]any)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", resource, diff)
			}
			return applied("conditions", c.get(t, gvr, "conditions"))
		})
		eventually(t, ready(hooks))
	}
}

func createdIsTakenAway(t *testing.T, c cluster) {
	s := newShop(t, "created.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "created"},
		"webhooks": []any{map[string]any{
			"name": "old.pizzas.example.com", "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
			"admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
		}},
	}}
	_, err := c.Resource(validating).Create(t.Context(), old, metav1.CreateOptions{FieldManager: "created"})
	check(t, err)
	hooks := declare(t, "created", s.options()...)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	u := c.get(t, validating, "created")
	check(t, applied("created", u))
	if configs := clientConfigs(u); len(configs) != 1 || configs["validate.pizzas."+s.group] == nil {
		t.Errorf("the webhooks are %v", configs)
	}
	if len(u.GetManagedFields()) != 1 {
		t.Errorf("the managed fields are %v", u.GetManagedFields())
	}
}

func conversionIsNeverTakenAway(t *testing.T, c cluster) {
	s := newShop(t, "released.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	old := declare(t, "released", s.options()...)
	next := declare(t, "released", s.definitions(), s.noConversion(), s.mutating(), s.validating())
	isConverted := func() error {
		strategy, _, _ := unstructured.NestedString(c.get(t, definitions, "pizzas.released.example.com").Object, "spec", "conversion", "strategy")
		if strategy != "Webhook" {
			return fmt.Errorf("the strategy is %q", strategy)
		}
		return nil
	}
	stop := reconcile(t, old, c.Config(), newBundle(ca))
	eventually(t, ready(old))
	check(t, isConverted())
	stop() // the rollout goes on without any replica that converts
	defer reconcile(t, next, c.user(t, "released", next.PolicyRules()), newBundle(ca))()
	eventually(t, func() error {
		const want = "registration: CustomResourceDefinition pizzas.released.example.com: spec.conversion.strategy is Webhook, registered by another release of released"
		if err := next.Check(nil); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			return fmt.Errorf("the check says %w", err)
		}
		return nil
	})
	check(t, isConverted())
	check(t, next.Carry(ca))
	c.patch(t, definitions, "pizzas.released.example.com", `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	eventually(t, ready(next))
	check(t, next.Carry(ca))

	// One of somebody else is left alone.
	other := newShop(t, "foreign.example.com")
	c.define(t, other)
	_, err := c.Resource(definitions).Patch(t.Context(), "pizzas.foreign.example.com", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%s theirs"}},"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://somebody.example.com/"},"conversionReviewVersions":["v1"]}}}}`,
			registration.DeclaredAnnotation, time.Now().UTC().Format(time.RFC3339)),
		metav1.PatchOptions{FieldManager: "somebody"})
	check(t, err)
	hooks := declare(t, "foreign", other.definitions(), other.noConversion(), other.validating())
	defer reconcile(t, hooks, c.Config(), newBundle(ca), registration.TakeOverAfter(time.Millisecond))()
	eventually(t, ready(hooks))
	check(t, hooks.Carry(ca))
	time.Sleep(200 * time.Millisecond)
	u := c.get(t, definitions, "pizzas.foreign.example.com")
	if configs := clientConfigs(u); len(configs) != 1 {
		t.Error("the conversion of somebody else is gone")
	}
	for _, m := range u.GetManagedFields() {
		if m.Manager == "foreign" {
			t.Errorf("a definition that somebody else converts was written: %s", m.FieldsV1)
		}
	}
}

// rulesAreCheckedAlike has the API server judge rules that New has judged. What New refuses is
// put into a manifest that it has made of other rules.
func rulesAreCheckedAlike(t *testing.T, c cluster) {
	for _, text := range []string{ // operations, groups, versions, resources
		"CREATE||v1|pods", "*|*|*|*", "*|*|*|*/*", "CREATE,UPDATE|,apps|v1,v2|pods,*/status", "CREATE||v1|pods/*,*", "CREATE||v1|*/scale,*",
		"CREATE|*,apps|v1|pods", "CREATE||*,v1|pods", "CREATE||v1|*/*,pods", "CREATE||v1|*,pods", "CREATE||v1|pods,*", "CREATE||v1|pods,*,pods/x", "CREATE||v1|*,pods,*",
		"CREATE||v1|pods/*,pods/status", "CREATE||v1|pods/status,pods/*", "CREATE||v1|*/status,pods/status", "CREATE||v1|pods/status,pods/status", "CREATE||v1|pods/*,*/status", "CREATE||v1|pods/*,pods/*",
		"*,CREATE||v1|pods", "Create||v1|pods", "PATCH||v1|pods", "CREATE|||pods", "CREATE||v1,|pods", "CREATE||v1|", "CREATE||v1|pods,", "CREATE||v1|Pods", "CREATE||v1|pods/status/x", "CREATE||v1|/", "CREATE||v1|pods//",
	} {
		part := strings.Split(text, "|")
		lists := [][]any{}
		for _, p := range part {
			list := []any{}
			for _, v := range strings.Split(p, ",") {
				list = append(list, v)
			}
			lists = append(lists, list)
		}
		rule := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: strings.Split(part[1], ","), APIVersions: strings.Split(part[2], ","), Resources: strings.Split(part[3], ",")}}
		for _, op := range strings.Split(part[0], ",") {
			rule.Operations = append(rule.Operations, admissionregistrationv1.OperationType(op))
		}
		_, ours := registration.New("alike", registration.URL("https://127.0.0.1:1"), registration.Validating("a.x.example.com", "/a", hider{}, registration.Rules(rule)))
		_, theirs := c.Resource(validating).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "alike"},
			"webhooks": []any{map[string]any{
				"name": "a.x.example.com", "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
				"rules": []any{map[string]any{"operations": lists[0], "apiGroups": lists[1], "apiVersions": lists[2], "resources": lists[3]}},
			}},
		}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if theirs != nil && !apierrors.IsInvalid(theirs) {
			t.Fatal(theirs)
		}
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%s: New says %v, and the API server %v", text, ours, theirs)
		}
	}
}
